package trace

import (
	"slices"

	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/outline"
	"github.com/helmsrc/helmsrc/internal/report"
)

// Outlines returns the outlines of clusters, with the results of a run.
func (t Tracer) Outlines(inputs []*load.Input, objects []report.Object) []*outline.Node {
	var roots []*outline.Node
	for _, in := range inputs {
		if in.Loose {
			continue
		}
		of := slices.DeleteFunc(slices.Clone(objects), func(o report.Object) bool { return o.Cluster != in.Cluster })
		roots = append(roots, t.Outline(in, of).Selected()...)
	}
	return roots
}
