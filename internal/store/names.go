package store

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
)

// dirs are the directories above those of objects, each opened once a run. One that was removed since shows nothing and takes
// nothing: a caller that finds this out drops them, and tries again. It is safe for use by many goroutines; the zero value is ready.
type dirs struct {
	mu     sync.Mutex
	opened map[string]*os.Root // by their paths
}

// maxDirs is how many stay open: a process may have so many files only.
const maxDirs = 64

// open opens a directory, which the caller closes.
func (d *dirs) open(root *os.Root, dir string) (*os.Root, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	parent, err := d.at(root, path.Dir(dir))
	if err != nil {
		return nil, err
	}
	opened, err := enter(parent, path.Base(dir))
	return opened, withPath(dir, err)
}

// in calls f with a directory that stays open, one call at a time.
func (d *dirs) in(root *os.Root, dir string, f func(dir *os.Root) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	opened, err := d.at(root, dir)
	if err != nil {
		return err
	}
	return f(opened)
}

// at returns a directory that stays open; d.mu must be held for as long as it is used.
func (d *dirs) at(root *os.Root, dir string) (*os.Root, error) {
	if dir == "." {
		return root, nil
	}
	if opened := d.opened[dir]; opened != nil {
		return opened, nil
	}
	parent, err := d.at(root, path.Dir(dir))
	if err != nil {
		return nil, err
	}
	opened, err := enter(parent, path.Base(dir))
	if err != nil {
		return nil, withPath(dir, err)
	}
	if len(d.opened) >= maxDirs {
		d.release()
	}
	if d.opened == nil {
		d.opened = map[string]*os.Root{}
	}
	d.opened[dir] = opened
	return opened, nil
}

// make creates a directory and what is missing above it.
func (d *dirs) make(root *os.Root, dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for at := range above(dir) {
		if d.opened[at] != nil {
			continue
		}
		parent, err := d.at(root, path.Dir(at))
		if err == nil {
			err = withPath(at, parent.Mkdir(path.Base(at), modeOf(at)))
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func (d *dirs) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.release()
}

func (d *dirs) release() {
	for name, dir := range d.opened {
		_ = dir.Close() // nothing was written through it
		delete(d.opened, name)
	}
}

// modeOf is the mode of a new directory, before the umask.
func modeOf(dir string) fs.FileMode {
	if private := path.Dir(stateDir); dir == private || strings.HasPrefix(dir, private+"/") {
		return dirMode
	}
	return artifactDirMode
}

// makeDir makes a directory if it is not there.
func (v *view) makeDir(dir string) error {
	err := v.in(dir, func(*os.Root) error { return nil })
	if errors.Is(err, fs.ErrNotExist) {
		err = v.above.make(v.root, dir)
	}
	if err != nil {
		return &DirectoryError{err}
	}
	return nil
}
