package load

import (
	"fmt"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// ReportFlux1 prints the one line about HelmReleases of Flux 1.
func (l *Reader) ReportFlux1(inputs ...*Input) {
	var first *manifest.Object
	count := 0
	for _, in := range inputs {
		for _, obj := range in.Set.Objects() {
			if !inventory.IsOperated(obj) || !in.Asked(obj) {
				continue
			}
			if count++; first == nil {
				first = obj
			}
		}
	}
	if first == nil {
		return
	}
	text := fmt.Sprintf("%d HelmReleases are of Flux 1, which ended in 2022", count)
	if count == 1 {
		text = "a HelmRelease is of Flux 1, which ended in 2022"
	}
	f := validate.New(first, finding.EndOfLife, text, "", first.Excerpt("apiVersion"))
	l.Console.Keep(f)
	l.Console.About(console.LevelWarning, console.Subject{}, fmt.Sprintf("%s: %s: see 'helmsrc explain %s'", first.Position("apiVersion"), text, finding.EndOfLife), f)
}
