package trace

import (
	"slices"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/outline"
	"github.com/helmsrc/helmsrc/internal/reconcile"
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

// Published are the charts of a run with what is published of them.
func (t Tracer) Published(results []*reconcile.Result) []report.Outdated {
	var list []report.Outdated
	for _, r := range results {
		if r.Published == nil {
			continue
		}
		obj, p := r.Object.Object, r.Published
		hide := obj.VeilField
		named := obj
		if obj.Origin != nil {
			named = obj.Origin
		}
		called := t.Console.Called(console.ObjectSubject(named))
		latest, _ := p.Latest()
		o := report.Outdated{
			Cluster: r.Cluster, Kind: called.Kind, Namespace: called.Namespace, Name: called.Name, Chart: hide(p.Chart),
			Current: hide(p.Current), Wanted: hide(p.Wanted), Latest: hide(latest.Version),
		}
		for _, c := range p.Versions {
			if !c.Removed {
				o.Versions = append(o.Versions, report.PublishedVersion{Version: hide(c.Version), Created: c.Created})
			}
		}
		list = append(list, o)
	}
	return list
}
