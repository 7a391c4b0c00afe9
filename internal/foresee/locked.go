package foresee

import (
	"context"
	"os"
	"slices"

	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/session"
)

// oldLock reads the lock beside the older manifests. It returns nil if there was no lock.
func oldLock(l *session.Lock, b *base) (*session.Lock, error) {
	if l == nil {
		return nil, nil
	}
	path, inside := b.locate(l.Path)
	if !inside || !file.Exists(path) {
		return nil, nil
	}
	return session.ReadLock(path, reconcile.LockedOnly)
}

// pinnedTo returns the lock entries of a release's sources, nil without any.
func (s *Side) pinnedTo(r *Release) []lock.Entry {
	l := s.Locked.Of(r.In)
	adm, err := r.In.Inventory.Admit(r.Object)
	if l == nil || err != nil {
		return nil
	}
	var entries []lock.Entry
	for _, source := range r.In.SourcesOf(adm, func(*inventory.RejectedError) {}) {
		if j, ok := l.Judge(r.In.Inventory, source); ok && j.Entry != nil {
			e := *j.Entry
			e.File = ""
			entries = append(entries, e)
		}
	}
	return entries
}

// isLock reports whether the manifests are compared with a lock file.
func isLock(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// comparedToLock compares the resolved input with a lock. A HelmRelease without an entry in the lock counts as
// new.
func (f *Foresight) comparedToLock(ctx context.Context) error {
	old := f.Work
	var err error
	if old.Locked, err = session.ReadLock(f.o.Against, reconcile.LockedAnyway); err != nil {
		return err
	}
	f.against = f.o.Against
	old.Worker = apart(f.Worker, &base{}, false)
	if f.before, err = old.side(f.after.Inputs, &base{}); err != nil {
		return err
	}
	f.before.Releases = slices.DeleteFunc(f.before.Releases, func(r *Release) bool { return len(f.before.pinnedTo(r)) == 0 })
	if err := f.checkSelected(); err != nil {
		return err
	}
	return f.match(ctx)
}
