package cmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/records"
	"github.com/helmsrc/helmsrc/internal/table"
)

func newExplainCommand(a *app) *cobra.Command {
	o := otherFormat("text", "json")
	c := &cobra.Command{
		Use:     "explain [CODE...]",
		GroupID: groupManifests,
		Short:   "Explain the codes of findings",
		Long: `Explain a finding: why it matters and how to correct it, with an example of the mistake
and of its correction. The code is printed in brackets after a message. Without CODE, all
codes are listed. Names such as chart-in-url are accepted as well.`,
		Example: `  helmsrc explain
  helmsrc explain HS044`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var codes []string
			for _, r := range finding.Rules() {
				codes = append(codes, string(r.Code)+"\t"+r.Summary)
			}
			return codes, cobra.ShellCompDirectiveNoFileComp
		},
	}
	o.add(a, c)
	o.addJSON(c, "json")
	c.RunE = a.runner(func(_ context.Context, args []string) (int, error) {
		if err := a.explain(o.format == "json", args); err != nil {
			return exit.Usage, err
		}
		return exit.OK, nil
	})
	return c
}

func (a *app) explain(json bool, args []string) error {
	rules, err := rulesNamed(args)
	switch {
	case err != nil:
		return err
	case json:
		return records.Encode(a.env.Stdout, rules, false)
	case len(args) == 0:
		return listRules(a.env.Stdout, a.paper, rules)
	}
	for i, r := range rules {
		if err := explainRule(a.env.Stdout, r, i > 0); err != nil {
			return err
		}
	}
	return nil
}

// rulesNamed returns the rules with these codes or names, in any case, or all rules without arguments.
func rulesNamed(args []string) ([]finding.Rule, error) {
	all := finding.Rules()
	if len(args) == 0 {
		return all, nil
	}
	var rules []finding.Rule
	for _, arg := range args {
		r, ok := ruleNamed(all, arg)
		if !ok {
			return nil, unknownCode(all, arg)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func ruleNamed(all []finding.Rule, name string) (finding.Rule, bool) {
	name = strings.Trim(name, "[]")
	if r, ok := finding.Lookup(strings.ToUpper(name)); ok {
		return r, true
	}
	for _, r := range all {
		if strings.EqualFold(name, r.Name) {
			return r, true
		}
	}
	return finding.Rule{}, false
}

func unknownCode(all []finding.Rule, name string) error {
	var names []string
	for _, r := range all {
		names = append(names, r.Name)
	}
	hint := "'helmsrc explain' lists all codes"
	if number, ok := strings.CutPrefix(strings.ToUpper(name), "HS"); ok && len(number) < 3 {
		if r, ok := ruleNamed(all, "HS"+strings.Repeat("0", 3-len(number))+number); ok {
			return &exit.UsageError{Err: fmt.Errorf("no code %q", name), Advice: fmt.Sprintf("did you mean %s?", r.Code)}
		}
	}
	if near, ok := finding.Nearest(name, names); ok {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return &exit.UsageError{Err: fmt.Errorf("no code %q", name), Advice: hint}
}

func listRules(w io.Writer, s table.Style, rules []finding.Rule) error {
	var rows [][]string
	for _, r := range rules {
		rows = append(rows, []string{string(r.Code), string(r.Severity), r.Name, r.Summary})
	}
	return s.Write(w, []string{"CODE", "SEVERITY", "NAME", "SUMMARY"}, rows, nil)
}

// proseColumns is the width of running text.
const proseColumns = 80

func explainRule(w io.Writer, r finding.Rule, further bool) error {
	var b strings.Builder
	if further {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s %s (%s)\n\n%s\n\n%s\n\n", r.Code, r.Name, r.Severity,
		wrapped(r.Summary+".", proseColumns), wrapped(r.Explanation, proseColumns))
	fmt.Fprintf(&b, "What to do:\n%s\n", wrapped(r.Fix, proseColumns))
	if !r.Silenceable {
		b.WriteString("\nIt cannot be silenced.\n")
	} else {
		fmt.Fprintf(&b, "\nTo silence it, on its line or the one before:\n  # helmsrc:ignore %s and why\n", r.Code)
	}
	if r.Example != "" {
		fmt.Fprintf(&b, "\nAn example:\n\n%s\nBetter:\n\n%s", shifted(r.Example), shifted(r.Better))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func shifted(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + line)
	}
	return b.String()
}
