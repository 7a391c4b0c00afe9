package cmd

import (
	"context"

	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/render"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// build builds all clusters.
func (r *reading) build(ctx context.Context, o *inputOptions) ([]*render.Result, error) {
	var results []*render.Result
	for _, cluster := range r.clusters {
		result, err := r.buildCluster(ctx, o, cluster)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}

// buildCluster builds a cluster, with all that the objects refer to which the run is about.
func (r *reading) buildCluster(ctx context.Context, o *inputOptions, cluster *render.Cluster) (*render.Result, error) {
	result := cluster.Build()
	for cluster.Postponed() && cluster.Need(r.wants(o, result)) {
		result = cluster.Build()
	}
	if err := cluster.Exhausted(); err != nil && ctx.Err() == nil {
		return nil, err
	}
	return result, nil
}

// wants lists what the objects that a run is about refer to and what is not in what was built of a cluster. Nothing is reported.
func (r *reading) wants(o *inputOptions, rendered *render.Result) []manifest.Want {
	set, _ := r.files.Set(rendered.Build)
	in := &input{set: set, inventory: inventory.New(set), table: reconcile.Kinds(), selectors: r.selectors, namespace: o.namespace, common: r.common}
	if o.sameNamespace {
		in.inventory.DenyCrossNamespace()
	}
	for _, obj := range in.inventory.Objects() {
		if !in.wanted(obj) {
			continue
		}
		adm, err := in.inventory.Admit(obj)
		if err != nil {
			continue // reported later
		}
		validate.Object(in.inventory, adm)
		for _, source := range in.sourcesOf(adm, func(*inventory.RejectedError) {}) {
			validate.Object(in.inventory, source)
		}
	}
	return set.Wants()
}

// needAll has everything built of every cluster. It reports whether that is more than was built.
func (r *reading) needAll() bool {
	more := false
	for _, cluster := range r.clusters {
		more = cluster.NeedAll() || more
	}
	return more
}
