package locking

import (
	"context"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/session"
)

// read reads the manifests, with --follow-sources also those in the sources that Kustomizations are built from.
func (l *Locking) read(ctx context.Context) ([]*load.Input, error) {
	if !l.s.Follow {
		return l.w.Inputs(ctx, l.s.Load)
	}
	members, err := l.shared.Follow(ctx, l.w, func(c *load.Cluster, m *session.Member) (err error) {
		if m.Store, err = l.shared.Temporary(); err == nil {
			m.Followed = l.shared.Following(ctx, l.w, c, m.Store)
			m.Followed.Locked = l.lockedBefore
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var inputs []*load.Input
	for _, m := range members {
		inputs = append(inputs, m.In)
		l.followed[m.In] = m.Followed
	}
	return inputs, nil
}

// lockedBefore returns the lock for the sources that are fetched before rendering. --update limits it to the other objects.
func (l *Locking) lockedBefore(_ context.Context, in *load.Input) (*reconcile.Locked, error) {
	locked := l.lock.Of(in)
	if l.o.Update {
		var all []*admission.Admitted
		for _, obj := range in.Inventory.Objects() {
			if adm, err := in.Inventory.Admit(obj); err == nil {
				all = append(all, adm)
			}
		}
		l.selectors = in.Selectors
		locked.Again = l.again(in, all)
	}
	return locked, nil
}

// inFetched reports whether a file has a name like those in a source that was fetched.
func inFetched(file string) bool {
	parts := strings.SplitN(file, "/", 4)
	return len(parts) == 4 && (reconcile.Kinds().IsSource(parts[0]) || parts[0] == sourcev1.HelmChartKind)
}
