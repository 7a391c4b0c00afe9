package console

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// Presentation configures how a finding is printed.
type Presentation struct {
	Text string  // instead of the finding's own message
	At   Subject // at the beginning of the line
	// Placed puts the place in front of the message instead of on a separate line.
	Placed bool
	// Brief leaves out the line of the file, and general advice.
	Brief bool
	// others are lines about findings with the same cause that are not printed one by one.
	others string
	// blocks are the objects that those findings block.
	blocks []finding.Object
}

// Report prints a finding, and keeps it for the reports.
func (c *Console) Report(f finding.Finding) {
	c.ReportAs(f, Presentation{At: SubjectOf(f), Placed: true})
}

// ReportAs prints a finding as t describes, with its hint.
func (c *Console) ReportAs(f finding.Finding, t Presentation) {
	if c.holdFinding(f, t) {
		return
	}
	level := levelOf(f.Severity)
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.Severity != finding.Note || c.shown(level) {
		c.findings = append(c.findings, f)
	}
	if !c.shown(level) {
		return
	}
	if t.Text == "" {
		t.Text = f.Message
	}
	text := c.format(level, t.At, auth.RedactText(t.line(f)), f)
	if !c.options.JSON && !t.Brief {
		if !t.Placed && f.Pos.Line > 0 {
			text += "  at " + OneLine(f.Pos.String()) + "\n"
		}
		text += c.excerpt(f, level) + seeAlso(f)
	}
	if !c.options.JSON {
		text += t.others
	}
	if blocked := c.blocked(append(slices.Clone(f.Blocks), t.blocks...)); len(blocked) > 0 && !c.options.JSON {
		text += "  blocks " + auth.RedactText(Few(blocked)) + "\n"
	}
	if hint := c.hintOf(f, t.Brief); hint != "" {
		text += c.format(levelHint, t.At, auth.RedactText(hint), f)
	}
	c.write(text)
}

// blocked returns the shown names of objects that are blocked.
func (c *Console) blocked(objects []finding.Object) []string {
	var names []string
	for _, o := range objects {
		names = append(names, OneLine(c.Called(Subject{o.Kind, o.Namespace, o.Name}).String()))
	}
	return names
}

// seeAlso returns a line with the other places that a finding is about. The message
// about duplicate definitions names them itself.
func seeAlso(f finding.Finding) string {
	if len(f.Related) == 0 || f.Code == finding.DuplicateObject {
		return ""
	}
	var places []string
	for _, pos := range f.Related {
		places = append(places, OneLine(pos.String()))
	}
	return "  see " + strings.Join(places, ", ") + "\n"
}

// OneLine makes a name, such as that of a file, printable in one line.
func OneLine(name string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(Printable(name))
}

func (t Presentation) line(f finding.Finding) string {
	if t.Placed && f.Pos.File != "" {
		return f.Pos.String() + ": " + t.Text
	}
	return t.Text
}

// hintOf returns the advice about a finding. The general advice of a code is
// returned for its first finding only.
func (c *Console) hintOf(f finding.Finding, brief bool) string {
	rule, _ := finding.Lookup(string(f.Code))
	if f.Fix != rule.Hint() {
		return f.Fix
	}
	if brief || c.advised[f.Code] {
		return ""
	}
	if c.advised == nil {
		c.advised = map[finding.Code]bool{}
	}
	c.advised[f.Code] = true
	return f.Fix
}

func (c *Console) write(text string) {
	if c.options.GitHub && !c.options.JSON {
		text = defuse(text)
	}
	if c.live != nil {
		c.live.repaint(text)
		return
	}
	_, _ = io.WriteString(c.w, text)
}

func levelOf(s finding.Severity) Level {
	switch s {
	case finding.Warning:
		return LevelWarning
	case finding.Note:
		return levelNote
	}
	return LevelError
}

// Findings returns all reported findings in their order, and the findings that comments silence. It prints held ones first.
func (c *Console) Findings() (reported, silenced []finding.Finding) {
	c.Unite()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, list := range [][]finding.Finding{c.findings, c.quiet} {
		for i := range list {
			c.concealFinding(&list[i])
		}
	}
	return c.findings, finding.Fold(c.quiet)
}

// Silenced reports whether a comment silences a finding, and keeps a silenced finding for the reports.
func (c *Console) Silenced(ignores *finding.Ignores, f finding.Finding) bool {
	reason, ok := ignores.Silences(f)
	if ok && (f.Severity != finding.Note || c.shown(levelNote)) {
		f.Reason = auth.RedactText(reason)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.quiet = append(c.quiet, f)
	}
	return ok
}

// Keep records a finding for the reports without printing it.
func (c *Console) Keep(f finding.Finding) {
	if c.hold(func(in []string) { f.Message, f.Clusters = f.Message+inClusters(in), in; c.Keep(f) }, "kept", f.Pos, f.Code, f.Kind, f.Namespace, f.Name, f.Message) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.findings = append(c.findings, f)
}

// coded appends the code to a message.
func coded(text string, code finding.Code) string {
	if code == "" {
		return text
	}
	return fmt.Sprintf("%s [%s]", strings.TrimRight(text, "\n"), code)
}

// maxFew is the number of names that Few lists.
const maxFew = 5

// Few joins the first names of a list, and counts the rest.
func Few(names []string) string {
	if len(names) <= maxFew {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxFew], ", "), len(names)-maxFew)
}
