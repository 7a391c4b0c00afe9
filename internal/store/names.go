package store

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
)

// names makes directories, and makes them durable before something depends on it: in the background, because that is
// not before an artifact counts as stored, and until then there is a download to wait for. It is safe for use by many
// goroutines; the zero value is ready.
type names struct {
	running sync.WaitGroup

	mu    sync.Mutex
	syncs map[string]*dirSync // the last one of each directory, until it is done
}

// A dirSync makes the names in one directory durable.
type dirSync struct {
	done   chan struct{}
	err    error
	before *dirSync // of the same directory: a failure is reported once by the system, and must not get lost
}

// makeDir creates dir and what is missing above it. [names.makeDurable] waits until all of that is durable.
func (n *names) makeDir(root *os.Root, dir string) error {
	missing, err := missingDirs(root, dir)
	if err != nil {
		return &DirectoryError{err}
	}
	for _, d := range slices.Backward(missing) {
		if err := root.Mkdir(d, modeOf(d)); err != nil && !errors.Is(err, fs.ErrExist) {
			return &DirectoryError{err}
		}
	}
	if len(missing) > 0 {
		n.sync(root, missing)
	}
	return nil
}

// modeOf is the mode of a new directory, before the umask.
func modeOf(dir string) fs.FileMode {
	if private := path.Dir(stateDir); dir == private || strings.HasPrefix(dir, private+"/") {
		return dirMode
	}
	return artifactDirMode
}

// makeDir makes the directory of a view if it is not there.
func (s *Store) makeDir(v *view, dir string) error {
	err := v.in(dir, func(*os.Root) error { return nil })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.names.makeDir(v.root, dir)
	case err != nil:
		return &DirectoryError{err}
	}
	return nil
}

// sync begins to sync what is above directories that were made.
func (n *names) sync(root *os.Root, made []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.syncs == nil {
		n.syncs = map[string]*dirSync{}
	}
	syncs := make([]*dirSync, len(made))
	for i, d := range made {
		syncs[i] = &dirSync{done: make(chan struct{}), before: n.syncs[path.Dir(d)]}
		n.syncs[path.Dir(d)] = syncs[i]
	}
	n.running.Go(func() {
		// The deepest first: most file systems write all that waits for it, and have nothing to do for the others.
		for i, d := range made {
			syncs[i].run(root, path.Dir(d))
			n.forget(path.Dir(d), syncs[i])
		}
	})
}

func (s *dirSync) run(root *os.Root, dir string) {
	defer close(s.done)
	s.err = syncDir(root, dir)
	if s.before != nil {
		<-s.before.done
		s.err = errors.Join(s.before.err, s.err)
		s.before = nil
	}
}

// forget drops a sync that has succeeded and was the last one of its directory. One that failed stays: no one may
// depend on that directory from then on.
func (n *names) forget(dir string, s *dirSync) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.err == nil && n.syncs[dir] == s {
		delete(n.syncs, dir)
	}
}

// makeDurable makes the names in a directory durable, and those of the directory itself and of all above it.
func (n *names) makeDurable(v *view, dir string) error {
	if err := v.in(dir, func(d *os.Root) error { return syncDir(d, ".") }); err != nil {
		return err
	}
	for d := dir; d != "."; d = path.Dir(d) {
		if err := n.wait(path.Dir(d)); err != nil {
			return &DirectoryError{err}
		}
	}
	return nil
}

// wait waits for the last sync of a directory.
func (n *names) wait(dir string) error {
	n.mu.Lock()
	s := n.syncs[dir]
	n.mu.Unlock()
	if s == nil {
		return nil
	}
	<-s.done
	return s.err
}
