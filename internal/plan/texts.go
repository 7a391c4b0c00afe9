package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Plan holds the changes of all releases. The command makes it from the result of Decide, and prints it.
type Plan struct {
	// Against names the state that the manifests are compared with.
	Against string
	Changes []Change
}

// Count returns the number of releases with an action.
func (p *Plan) Count(a Action) int {
	n := 0
	for i := range p.Changes {
		if p.Changes[i].Action == a {
			n++
		}
	}
	return n
}

// Summary returns the numbers of releases as text.
func (p *Plan) Summary() string {
	replaced := 0
	for i := range p.Changes {
		if p.Changes[i].Replaces != nil {
			replaced++
		}
	}
	install := fmt.Sprintf("%d to install", p.Count(Install))
	if replaced > 0 {
		install += fmt.Sprintf(" (%d uninstalled first)", replaced)
	}
	return fmt.Sprintf("%s, %d to upgrade, %d to uninstall, %d blocked, %d unchanged",
		install, p.Count(Upgrade), p.Count(Uninstall), p.Count(Blocked), p.Count(None))
}

// Changed reports whether any release changes or is blocked.
func (p *Plan) Changed() bool { return p.Count(None) < len(p.Changes) }

// Texts returns the reasons of a change as text.
func (c *Change) Texts() []string {
	var list []string
	for i := range c.Reasons {
		list = append(list, c.Reasons[i].Sentence())
	}
	return list
}

// ShortTexts returns the reasons for a line that shows the charts before and after: they do not repeat the charts.
func (c *Change) ShortTexts() []string {
	short := *c
	short.Reasons = slices.Clone(c.Reasons)
	for i := range short.Reasons {
		r := &short.Reasons[i]
		if c.Before != nil && c.After != nil && r.Before == c.Before.String() && r.After == c.After.String() {
			r.Before, r.After = "", ""
		}
	}
	return short.Texts()
}

// shortened cuts a digest to the length that versions use, and a commit to 12 digits.
func shortened(s string) string {
	const shown, commit = len("sha256:") + 12, 40
	if len(s) == commit && strings.Trim(s, "0123456789abcdef") == "" {
		return s[:12]
	}
	if strings.HasPrefix(s, "sha256:") && len(s) > shown && !strings.Contains(s, " ") {
		return s[:shown]
	}
	return s
}

const maxNamed = 8

// Sentence returns a reason as text.
func (r *Reason) Sentence() string {
	text := r.Text
	switch {
	case r.Before != "" && r.After != "" && r.Before != r.After:
		text += ": " + shortened(r.Before) + " -> " + shortened(r.After)
	case r.After != "" && r.Before == "":
		text += ": " + r.After
	}
	if r.Note != "" {
		text += " (" + r.Note + ")"
	}
	if len(r.Fields) == 0 {
		return text
	}
	var names []string
	for _, f := range r.Fields[:min(len(r.Fields), maxNamed)] {
		name := f.Path
		if f.Change != changeChanged {
			name += " " + f.Change
		}
		if f.Secret {
			name += " (secret)"
		}
		names = append(names, name)
	}
	fields := strings.Join(names, ", ")
	if more := len(r.Fields) - len(names) + r.Omitted; more > 0 {
		fields += fmt.Sprintf(" and %d more", more)
	}
	return text + ": " + fields
}
