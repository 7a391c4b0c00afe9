package cmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

func newWhyCommand(a *app) *cobra.Command {
	o := &runOptions{until: reconcile.Choose, list: true}
	var format string
	c := &cobra.Command{
		Use:     "why -f FILE... [KIND/][NAMESPACE/]NAME",
		GroupID: groupCharts,
		Short:   "Explain where an object comes from, and how its version was chosen",
		Long: `Say of one object: the file and the kustomization that it comes from, fields that
variables or patches decide; its source; of its chart what the constraint is, how many
versions are published, which one is chosen, and why those around it are not; which
login would be used and where it comes from, but never the login itself; what checks
signatures; and what depends on it.

Nothing is downloaded but the index or the list of tags, and nothing is written.

Exit codes: 0 explained, 1 the object fails, as far as it got is explained, 2 wrong
usage, no such object or unreadable input, 5 a retry may help, 130 interrupted.`,
		Example: `  helmsrc why -f helmrepository.yaml -f helmchart.yaml HelmChart/podinfo
  helmsrc why -R -f clusters/ app -o json`,
	}
	o.addListing(c)
	c.Flags().StringVarP(&format, "output", "o", "yaml", "`format` of stdout: yaml, json")
	choices(c.Flags(), "output", "yaml", "json")
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := oneOf("output", format, "yaml", "json"); err != nil {
			return exit.Usage, err
		}
		var inputs []*load.Input
		var usage error
		o.images = func(_ context.Context, read *load.Input, _ *reconcile.Reconciler) { inputs = append(inputs, read) }
		code, err := a.runReconciliation(ctx, o, args, func(results []*reconcile.Result) error {
			var answers []*answer
			for _, in := range inputs {
				obj, err := onlyAsked(in)
				if err != nil {
					usage = err
					return nil
				}
				if obj != nil {
					answers = append(answers, a.newAnswer(in, obj, results))
				}
			}
			if len(answers) == 0 {
				usage = exit.Usagef("no object is selected")
				return nil
			}
			return writeAnswers(a.env.Stdout, answers, format)
		})
		if err == nil && usage != nil {
			return exit.Usage, usage
		}
		return code, err
	})
	return c
}

// onlyAsked is the one object of a cluster that the arguments name, nil if it has none. The HelmChart that is made of a HelmRelease goes with it.
func onlyAsked(in *load.Input) (*manifest.Object, error) {
	var found []*manifest.Object
	var names []string
	for _, obj := range in.Inventory.Objects() {
		if in.Wanted(obj) && obj.Origin == nil {
			found, names = append(found, obj), append(names, obj.String())
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	if len(found) == 0 {
		return nil, nil
	}
	return nil, &exit.UsageError{Err: fmt.Errorf("%d objects are selected: %s", len(found), console.Few(names)), Advice: "name one of them: helmsrc why -f FILE KIND/NAMESPACE/NAME"}
}

// writeAnswers writes one answer as it is, and those of several clusters as a list.
func writeAnswers(w io.Writer, answers []*answer, format string) error {
	var whole any = answers
	if len(answers) == 1 {
		whole = answers[0]
	}
	if format == "json" {
		return encodeJSON(w, whole)
	}
	text, err := yaml.Marshal(whole)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// encodeJSON writes one indented value.
func encodeJSON(w io.Writer, v any) error {
	var b strings.Builder
	if err := encodeRecords(&b, []any{v}, false); err != nil {
		return err
	}
	text := strings.TrimSuffix(strings.TrimPrefix(b.String(), "[\n"), "]\n")
	for line := range strings.Lines(text) {
		if _, err := io.WriteString(w, strings.TrimPrefix(line, "  ")); err != nil {
			return err
		}
	}
	return nil
}
