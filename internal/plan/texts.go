package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Plan is what would happen to all releases. The command puts it together of what Decide returns, and prints it.
type Plan struct {
	// Against is what the manifests are compared with, in words.
	Against string
	Changes []Change
}

// Count is how many releases an action is for.
func (p *Plan) Count(a Action) int {
	n := 0
	for i := range p.Changes {
		if p.Changes[i].Action == a {
			n++
		}
	}
	return n
}

// Summary counts the releases in words.
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

// Changed reports whether anything would happen, or is blocked.
func (p *Plan) Changed() bool { return p.Count(None) < len(p.Changes) }

// Texts are the reasons of a change as text.
func (c *Change) Texts() []string {
	var list []string
	for i := range c.Reasons {
		list = append(list, c.Reasons[i].Sentence())
	}
	return list
}

// ShortTexts are the reasons beside the chart before and after: none says again what both are.
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

// shortened cuts a digest to as much as a version gets of it, and a commit to as much as Git shows of long ones.
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

// Sentence is a reason as text.
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
