package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/lockfile"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

// A Lock is a lock with its place, and the mode in which objects are taken from it.
type Lock struct {
	*lock.Lock
	Path   string
	Mode   reconcile.LockMode
	bundle string // the bundle that contains it, "" for a file
}

// ReadLock reads a lock file.
func ReadLock(path string, mode reconcile.LockMode) (*Lock, error) {
	l, err := lockfile.Read(path)
	if err != nil {
		return nil, &exit.UsageError{Err: err}
	}
	return &Lock{Lock: l, Path: path, Mode: mode}, nil
}

// Of returns the lock with the cluster of an input, nil for a nil lock.
func (l *Lock) Of(in *load.Input) *reconcile.Locked {
	if l == nil {
		return nil
	}
	return &reconcile.Locked{
		Lock: l.Lock, File: cmp.Or(l.bundle, filepath.ToSlash(l.Path)), Carried: l.bundle != "", Cluster: LockedCluster(in, l.Path, l.Lock), Mode: l.Mode,
	}
}

// Lock reads, once, the lock that the runs use or compare with. It is nil if they have no lock.
func (s *Session) Lock(ctx context.Context) (*Lock, error) {
	o := &s.o.Lock
	switch {
	case s.lock != nil || !o.Locked && !o.Current:
		return s.lock, nil
	case s.carried != nil:
		s.lock = &Lock{Lock: s.carried, Path: o.Path(), bundle: o.Bundle()}
		return s.lock, nil
	}
	mode := reconcile.LockedOnly
	if o.Current {
		mode = reconcile.LockedFirst
	}
	l, err := ReadLock(o.Path(), mode)
	if err != nil && o.Current && o.File == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	s.lock = l
	return l, err
}

// Locked returns the lock with the cluster of an input, nil if the runs have no lock.
func (s *Session) Locked(ctx context.Context, in *load.Input) (*reconcile.Locked, error) {
	l, err := s.Lock(ctx)
	return l.Of(in), err
}

// LockedCluster returns the name of an input's cluster in a lock: its own name, or its directory relative to the lock file. If
// the input has only one cluster, that may be a part of a locked cluster, or contain it: then LockedCluster returns the name
// of that cluster.
func LockedCluster(in *load.Input, path string, l *lock.Lock) string {
	for _, name := range []string{in.Called, FromLock(path, in.Begins)} {
		if name != "" && slices.Contains(l.Clusters(), name) {
			return name
		}
	}
	if in.Cluster != "" {
		return in.Cluster
	}
	var found []string
	for _, name := range l.Clusters() {
		for _, dir := range in.Dirs {
			at := FromLock(path, dir)
			if at == name || strings.HasPrefix(at+"/", name+"/") || strings.HasPrefix(name+"/", at+"/") {
				found = append(found, name)
				break
			}
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	if in.Called != "" && hasNeighbours(in) {
		return in.Called
	}
	return ""
}

// hasNeighbours reports whether directories beside that of the input contain clusters: its entries then need its name.
func hasNeighbours(in *load.Input) bool {
	above := filepath.Dir(in.Begins)
	entries, err := file.ReadDir(above)
	if err != nil || above == in.Begins {
		return false
	}
	looked := 0
	for _, e := range entries {
		dir := filepath.Join(above, e.Name())
		if !e.IsDir() || dir == in.Begins {
			continue
		}
		if looked++; looked > maxNeighbours {
			return true // at worst, the entries get a name without need
		}
		for _, at := range []string{dir, filepath.Join(dir, "flux-system")} {
			if begins(at) {
				return true
			}
		}
	}
	return false
}

// maxNeighbours is the limit of the directories that are searched, and of the files in each.
const maxNeighbours = 200

// begins reports whether a cluster may begin in a directory: a file in it holds a Kustomization or a FluxInstance.
func begins(dir string) bool {
	names, err := filepath.Glob(filepath.Join(dir, "*.y*ml"))
	if err != nil {
		return false
	}
	for _, name := range names[:min(len(names), maxNeighbours)] {
		f, err := file.OpenInside(name)
		if err != nil {
			continue
		}
		head, _ := io.ReadAll(io.LimitReader(f, maxBeginning)) // an unreadable file begins no cluster
		_ = f.Close()
		if bytes.Contains(head, []byte(manifest.KustomizeGroup)) || bytes.Contains(head, []byte("kind: FluxInstance")) {
			return true
		}
	}
	return false
}

// maxBeginning is the limit, in bytes, of the part of a file that is searched.
const maxBeginning = 64 << 10

// FromLock returns a path relative to the directory of a lock file, "" if it is not below that directory.
func FromLock(path, name string) string {
	from, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return ""
	}
	to, err := filepath.Abs(name)
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(from, to)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.ToSlash(rel)
}
