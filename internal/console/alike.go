package console

import (
	"strings"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// MaxAlike is how many findings of one cause are printed one by one.
const MaxAlike = 3

// cause is equal for findings that say the same of different objects.
type cause struct {
	code               finding.Code
	severity           finding.Severity
	kind, message, fix string
}

// ReportAlike prints findings in their order. Those of one cause are printed once if they are many: at the first, with
// the places of a few others. All of them are kept for the reports.
func (c *Console) ReportAlike(found []finding.Finding, brief bool) {
	alike := map[cause][]finding.Finding{}
	for _, f := range found {
		alike[causeOf(f)] = append(alike[causeOf(f)], f)
	}
	reported := map[cause]bool{}
	for _, f := range found {
		same := alike[causeOf(f)]
		t := Presentation{At: SubjectOf(f), Placed: true, Brief: brief}
		many := len(same) > MaxAlike && !c.options.JSON && f.Severity != finding.Note
		if many && reported[causeOf(f)] {
			c.Keep(f)
			continue
		}
		if many {
			reported[causeOf(f)] = true
			t.others = placesOf(same[1:])
		}
		c.ReportAs(f, t)
	}
}

func causeOf(f finding.Finding) cause {
	return cause{f.Code, f.Severity, f.Kind, f.Message, f.Fix}
}

// placesOf are the objects of findings, each with its place.
func placesOf(found []finding.Finding) string {
	var places []string
	for _, f := range found {
		name := f.Name
		if f.Namespace != "" {
			name = f.Namespace + "/" + name
		}
		places = append(places, strings.TrimSpace(f.Kind+" "+name+" at "+OneLine(f.Pos.String())))
	}
	return Few(places)
}
