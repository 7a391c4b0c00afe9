package cmd

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/lockfile"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

// readLock reads the lock that charts are taken from, if they are.
func (a *app) readLock(ctx context.Context, o *planOptions) error {
	if !o.run.lock.locked {
		return nil
	}
	if carried := o.run.lock.carried; carried != nil {
		o.locked, o.lockPath, o.lockMode = carried, a.lockPath(&o.run.lock), reconcile.LockedOnly
		return nil
	}
	return o.takeLock(ctx, a.lockPath(&o.run.lock), reconcile.LockedOnly)
}

func (o *planOptions) takeLock(ctx context.Context, path string, mode reconcile.LockMode) error {
	l, err := lockfile.Read(ctx, path)
	if err != nil {
		return &exit.UsageError{Err: err, Advice: hintOf(err)}
	}
	o.locked, o.lockPath, o.lockMode = l, path, mode
	return nil
}

// takeOldLock reads the lock that lay beside the manifests as they were. If there was none, nothing is taken from one.
func (a *app) takeOldLock(ctx context.Context, o *planOptions, b *base) error {
	if o.locked == nil {
		return nil
	}
	path, inside := b.locate(o.lockPath)
	o.locked = nil
	if !inside || !exists(path) {
		return nil
	}
	return o.takeLock(ctx, path, reconcile.LockedOnly)
}

// lockedBy is the lock that the charts of an input are taken from, nil for none.
func (s *planSide) lockedBy(in *load.Input) *reconcile.Locked {
	if s.o.locked == nil {
		return nil
	}
	locked := &reconcile.Locked{
		Lock: s.o.locked, File: filepath.ToSlash(s.o.lockPath), Cluster: lockedCluster(in, s.o.lockPath, s.o.locked), Mode: s.o.lockMode,
	}
	if s.o.locked == s.o.run.lock.carried {
		locked.File, locked.Carried = s.o.run.lock.bundle(), true
	}
	return locked
}

// pinnedTo is what a lock says of what a release comes from, nil for nothing.
func (s *planSide) pinnedTo(r *foreseen) []lock.Entry {
	l := s.lockedBy(r.in)
	adm, err := r.in.Inventory.Admit(r.obj)
	if l == nil || err != nil {
		return nil
	}
	var entries []lock.Entry
	for _, source := range r.in.SourcesOf(adm, func(*inventory.RejectedError) {}) {
		if j, ok := l.Judge(r.in.Inventory, source); ok && j.Entry != nil {
			e := *j.Entry
			e.File = ""
			entries = append(entries, e)
		}
	}
	return entries
}

// isLock reports whether a value of --against is a file.
func isLock(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// comparedToLock compares what the input resolves to with what a lock says. A HelmRelease that it says nothing of was not
// there.
func (f *foresight) comparedToLock(ctx context.Context) error {
	old := *f.o
	if err := old.takeLock(ctx, f.o.against, reconcile.LockedAnyway); err != nil {
		return err
	}
	f.against = f.o.against
	quiet := f.app.apart(&base{}, false)
	var err error
	if f.before, err = quiet.newSide(&old, f.after.inputs, &base{close: func() {}}); err != nil {
		return err
	}
	f.before.releases = slices.DeleteFunc(f.before.releases, func(r *foreseen) bool { return len(f.before.pinnedTo(r)) == 0 })
	if err := f.checkSelected(ctx); err != nil {
		return err
	}
	return f.match(ctx)
}
