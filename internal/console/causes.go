package console

import (
	"strings"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// MaxOfCause is the largest number of findings of one cause that are printed one by one.
const MaxOfCause = 3

// cause is equal for findings that report the same problem of different objects.
type cause struct {
	code               finding.Code
	severity           finding.Severity
	kind, message, fix string
	pos                finding.Pos // set for findings that share a place
}

// ReportByCause prints findings in their order. Findings of one cause are printed once if there are more than MaxOfCause of them,
// or if they are at one place, as a mistake of a patch is. That line names the first object, a few further objects, and
// everything that the findings block. The reports contain all of them.
func (c *Console) ReportByCause(found []finding.Finding, t Presentation) {
	byCause := map[cause][]*finding.Finding{}
	for i, f := range found {
		byCause[causeOf(f)] = append(byCause[causeOf(f)], &found[i])
		if f.Pos.Line > 0 {
			byCause[placedCause(f)] = append(byCause[placedCause(f)], &found[i])
		}
	}
	reported := map[cause]bool{}
	for _, f := range found {
		of, least := placedCause(f), 1
		if len(byCause[of]) < 2 {
			of, least = causeOf(f), MaxOfCause
		}
		if f.Code == finding.RemoteResource {
			least = 1
		}
		t := t
		t.At = SubjectOf(f)
		many := len(byCause[of]) > least && !c.options.JSON && f.Severity != finding.Note
		if many && reported[of] {
			c.Keep(f)
			continue
		}
		if many {
			reported[of] = true
			t.others = othersOf(byCause[of])
			for _, other := range byCause[of][1:] {
				t.blocks = append(t.blocks, other.Blocks...)
			}
		}
		c.ReportAs(f, t)
	}
}

func causeOf(f finding.Finding) cause {
	if f.Cause != "" {
		return cause{severity: f.Severity, message: f.Cause}
	}
	if f.Code == finding.RemoteResource { // a line for each file
		return cause{code: f.Code, severity: f.Severity, pos: finding.Pos{File: f.Pos.File}}
	}
	return cause{code: f.Code, severity: f.Severity, kind: f.Kind, message: f.Message, fix: f.Fix}
}

func placedCause(f finding.Finding) cause {
	of := causeOf(f)
	of.pos = f.Pos
	return of
}

// othersOf returns lines that name the objects of all findings except the first, each with its place if that differs from
// the first. An object that lacks something has a line that names the missing part.
func othersOf(found []*finding.Finding) string {
	var objects, lines []string
	for _, f := range found[1:] {
		name := f.Name
		if f.Namespace != "" {
			name = f.Namespace + "/" + name
		}
		object := f.Kind + " " + name
		if f.Pos != found[0].Pos {
			object += " at " + OneLine(f.Pos.String())
		}
		object = strings.TrimSpace(object)
		if f.Missing == "" {
			objects = append(objects, object)
		} else {
			lines = append(lines, "  also "+object+": "+OneLine(f.Missing)+"\n")
		}
	}
	if len(objects) > 0 {
		lines = append(lines, "  also "+Few(objects)+"\n")
	}
	return auth.RedactText(strings.Join(lines, ""))
}
