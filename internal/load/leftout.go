package load

import (
	"fmt"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// ReportLeftOut reports which Flux kinds of the inputs take no part in a run.
func (l *Reader) ReportLeftOut(inputs ...*Input) {
	var parts []string
	for _, s := range skippedOf(inputs) {
		parts = append(parts, fmt.Sprintf("%d %s", s.Count, s.Kind))
	}
	if len(parts) == 0 {
		return
	}
	// A warning to people, who should know, and a note to a reader who judges the input: nothing is wrong with it.
	text := "skipped " + strings.Join(parts, ", ") + ": not supported yet"
	f := validate.New(nil, finding.LeftOut, text, "", manifest.Excerpt{})
	l.Console.Keep(f)
	l.Console.About(console.LevelWarning, console.Subject{}, text, f)
}

// skippedOf counts what was skipped in several clusters. A kind counts as often as in the cluster that has most of it: they
// share files.
func skippedOf(inputs []*Input) []manifest.KindCount {
	var all []manifest.KindCount
	for _, in := range inputs {
		for _, s := range in.Set.Skipped() {
			i := slices.IndexFunc(all, func(k manifest.KindCount) bool { return k.Kind == s.Kind && k.Group == s.Group })
			if i < 0 {
				all = append(all, s)
			} else {
				all[i].Count = max(all[i].Count, s.Count)
			}
		}
	}
	return all
}
