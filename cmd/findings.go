package cmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// presentation says how a finding is printed.
type presentation struct {
	text string  // instead of the finding's own message
	at   subject // that the line begins with
	// placed puts the place in front of the message; else it is a line of its own.
	placed bool
	// brief leaves out the line of the file, and what to do in general.
	brief bool
	// others are the places of findings with the same cause that are not printed one by one.
	others string
}

// report prints a finding, and keeps it for the reports.
func (c *console) report(f finding.Finding) {
	c.reportAs(f, presentation{at: subject{f.Kind, f.Namespace, f.Name}, placed: true})
}

// reportAs prints a finding in one of several ways, with what to do about it.
func (c *console) reportAs(f finding.Finding, t presentation) {
	level := levelOf(f.Severity)
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.Severity != finding.Note || c.shown(level) {
		c.findings = append(c.findings, f)
	}
	if !c.shown(level) {
		return
	}
	if t.text == "" {
		t.text = f.Message
	}
	text := c.format(level, t.at, reconcile.RedactText(t.line(f)), f)
	if !c.json && !t.brief {
		if !t.placed && f.Pos.Line > 0 {
			text += "  at " + oneLine(f.Pos.String()) + "\n"
		}
		text += c.excerpt(f, level) + seeAlso(f)
	}
	if t.others != "" && !c.json {
		text += "  also " + reconcile.RedactText(t.others) + "\n"
	}
	if hint := c.hintOf(f, t.brief); hint != "" {
		text += c.format(levelHint, t.at, reconcile.RedactText(hint), f)
	}
	c.write(text)
}

// seeAlso are the other places that a finding is about. A message about definitions
// names all of them itself.
func seeAlso(f finding.Finding) string {
	if len(f.Related) == 0 || f.Code == finding.DuplicateObject {
		return ""
	}
	var places []string
	for _, pos := range f.Related {
		places = append(places, oneLine(pos.String()))
	}
	return "  see " + join(places) + "\n"
}

// oneLine makes the name of a file fit to be printed.
func oneLine(name string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(printable(name))
}

func (t presentation) line(f finding.Finding) string {
	if t.placed && f.Pos.File != "" {
		return f.Pos.String() + ": " + t.text
	}
	return t.text
}

// hintOf is what to do. What would be said of every finding with this code is said
// once.
func (c *console) hintOf(f finding.Finding, brief bool) string {
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

func (c *console) write(text string) {
	if c.github && !c.json {
		text = defuse(text)
	}
	if c.live != nil {
		c.live.above(text)
		return
	}
	_, _ = io.WriteString(c.w, text)
}

func levelOf(s finding.Severity) string {
	switch s {
	case finding.Warning:
		return levelWarn
	case finding.Note:
		return levelNote
	}
	return levelError
}

// findings are all that this run has reported, in the order in which it did, and what
// comments silenced.
func (a *app) findings() (reported, silenced []finding.Finding) {
	c := a.console
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, list := range [][]finding.Finding{c.findings, c.quiet} {
		for i := range list {
			c.concealFinding(&list[i])
		}
	}
	return c.findings, c.quiet
}

// silenced reports whether a comment silences a finding, which is kept for the reports.
func (c *console) silenced(ignores *finding.Ignores, f finding.Finding) bool {
	reason, ok := ignores.Silences(f)
	if ok && (f.Severity != finding.Note || c.shown(levelNote)) {
		f.Reason = reconcile.RedactText(reason)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.quiet = append(c.quiet, f)
	}
	return ok
}

// keep records a finding that is printed in other words.
func (c *console) keep(f finding.Finding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.findings = append(c.findings, f)
}

// reportUnreadable prints a file, or an object in it, that cannot be used.
func (c *console) reportUnreadable(err error) {
	f := validate.Unreadable(err)
	text, placed := strings.CutPrefix(err.Error(), f.Pos.String()+": ")
	c.reportAs(f, presentation{text: text, placed: placed})
}

// reportRejection prints what the API server would have said: all causes in one line,
// shown at the first of them.
func (c *console) reportRejection(obj *manifest.Object, err error) {
	all := validate.Rejected(obj, err)
	if len(all) == 0 {
		c.failObject(subjectOf(obj), err)
		return
	}
	first := all[0]
	first.Fix = obj.ConcealError(strings.Join(finding.Hints(err), "; "))
	if first.Fix == "" {
		first.Fix = all[0].Fix
	}
	c.reportAs(first, presentation{at: subjectOf(obj), text: obj.ConcealError(strings.TrimPrefix(err.Error(), first.Pos.String()+": ")), placed: true})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.findings = append(c.findings[:len(c.findings)-1], all...)
}

// coded puts the code behind a message.
func coded(text string, code finding.Code) string {
	if code == "" {
		return text
	}
	return fmt.Sprintf("%s [%s]", strings.TrimRight(text, "\n"), code)
}
