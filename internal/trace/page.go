package trace

import (
	"slices"

	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/outline"
	"github.com/helmsrc/helmsrc/internal/report"
)

// Outlines are those of clusters, with what a run found out about their objects.
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
