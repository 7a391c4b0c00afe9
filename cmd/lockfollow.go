package cmd

import (
	"context"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/render"
)

// read reads the manifests, with --follow-sources also those in the sources that Kustomizations are made of.
func (r *locking) read(ctx context.Context, args []string) ([]*load.Input, error) {
	o := &r.o.run
	if !o.follow {
		return r.app.readClusters(ctx, &o.input, args, "")
	}
	members, err := r.app.readMembers(ctx, o, args, "", func(c *load.Cluster, m *member) (err error) {
		if m.st, err = r.shared.Temporary(); err == nil {
			m.followed = r.app.newFollowing(ctx, o, r.shared, c, m.st)
			m.followed.locked = r.lockedBefore
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		r.followed[m.in] = m.followed
	}
	return inputsOf(members), nil
}

// lockedBefore is what the sources are locked to that are fetched before rendering: those that --update is not about.
func (r *locking) lockedBefore(_ context.Context, in *load.Input) (*reconcile.Locked, error) {
	locked := &reconcile.Locked{Lock: r.lock, File: r.name(), Cluster: lockedCluster(in, r.path, r.lock), Mode: reconcile.LockedFirst}
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

// has reports whether a file is one of a source that was fetched.
func (f *following) has(file string) bool {
	return f != nil && slices.ContainsFunc(f.fetched, func(s render.Source) bool {
		return strings.HasPrefix(file, s.Kind+"/"+s.Namespace+"/"+s.Name+"/")
	})
}

// inFetched reports whether a file is called as those of a source that was fetched are.
func inFetched(file string) bool {
	parts := strings.SplitN(file, "/", 4)
	return len(parts) == 4 && (reconcile.Kinds().IsSource(parts[0]) || parts[0] == sourcev1.HelmChartKind)
}
