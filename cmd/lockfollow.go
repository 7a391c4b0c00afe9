package cmd

import (
	"context"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/session"
)

// read reads the manifests, with --follow-sources also those in the sources that Kustomizations are made of.
func (r *locking) read(ctx context.Context) ([]*load.Input, error) {
	o := &r.o.run
	if !o.Follow {
		return r.app.worker.Inputs(ctx, o.Load)
	}
	members, err := r.shared.Follow(ctx, &r.app.worker, func(c *load.Cluster, m *session.Member) (err error) {
		if m.Store, err = r.shared.Temporary(); err == nil {
			m.Followed = r.shared.Following(ctx, &r.app.worker, c, m.Store)
			m.Followed.Locked = r.lockedBefore
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		r.followed[m.In] = m.Followed
	}
	return inputsOf(members), nil
}

// lockedBefore is what the sources are locked to that are fetched before rendering: those that --update is not about.
func (r *locking) lockedBefore(_ context.Context, in *load.Input) (*reconcile.Locked, error) {
	locked := &reconcile.Locked{Lock: r.lock, File: r.name(), Cluster: session.LockedCluster(in, r.path, r.lock), Mode: reconcile.LockedFirst}
	if r.o.update {
		var all []*admission.Admitted
		for _, obj := range in.Inventory.Objects() {
			if adm, err := in.Inventory.Admit(obj); err == nil {
				all = append(all, adm)
			}
		}
		r.selectors = in.Selectors
		locked.Anew = r.anew(in, all)
	}
	return locked, nil
}

// inFetched reports whether a file is called as those of a source that was fetched are.
func inFetched(file string) bool {
	parts := strings.SplitN(file, "/", 4)
	return len(parts) == 4 && (reconcile.Kinds().IsSource(parts[0]) || parts[0] == sourcev1.HelmChartKind)
}
