package store

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"time"
)

// A view is the artifacts directory as one object sees it. The directories that the object's files are in are opened
// once: what is done in them is then one system call, and no walk from the top. While the object is locked no one
// removes them. It is safe for use by many goroutines, and of use after close, too: others may still read.
type view struct {
	root  *os.Root
	above *dirs

	mu     sync.Mutex
	opened map[string]*os.Root // by their paths
	closed bool                // nothing stays open
}

func (s *Store) newView(root *os.Root) *view {
	return &view{root: root, above: &s.dirs, opened: map[string]*os.Root{}}
}

// close lets go of the directories.
func (v *view) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.release()
	v.closed = true
}

// forget lets go of the directories because they may be others by now.
func (v *view) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.release()
	v.above.forget()
}

func (v *view) release() {
	for name, dir := range v.opened {
		_ = dir.Close() // nothing was written through it
		delete(v.opened, name)
	}
}

// in calls f with an open directory. That of records is the one of all objects of a namespace, which take turns in it.
func (v *view) in(dir string, f func(dir *os.Root) error) error {
	if strings.HasPrefix(dir, stateDir) {
		return v.above.in(v.root, dir, f)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	d := v.opened[dir]
	if d == nil {
		var err error
		if d, err = v.above.open(v.root, dir); err != nil {
			return err
		}
		if v.closed {
			defer d.Close()
		} else {
			v.opened[dir] = d
		}
	}
	return f(d)
}

// at calls f with the directory of a file and the name that the file has there. Errors give its whole path.
func (v *view) at(name string, f func(dir *os.Root, base string) error) error {
	return v.in(path.Dir(name), func(dir *os.Root) error {
		err := f(dir, path.Base(name))
		var pathError *fs.PathError
		if errors.As(err, &pathError) {
			pathError.Path = name
		}
		return err
	})
}

// openDir opens a directory step by step. A planted link does not count as one: even one that stays inside would make
// two objects share their files.
func openDir(root *os.Root, dir string) (*os.Root, error) {
	d := root
	for at := range above(dir) {
		next, err := enter(d, path.Base(at))
		if d != root {
			_ = d.Close() // nothing was written through it
		}
		if err != nil {
			return nil, withPath(at, err)
		}
		d = next
	}
	return d, nil
}

func enter(root *os.Root, name string) (*os.Root, error) {
	fi, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, errNotDirectory
	}
	return root.OpenRoot(name)
}

func (v *view) Lstat(name string) (fi fs.FileInfo, err error) {
	err = v.at(name, func(dir *os.Root, base string) (err error) {
		fi, err = dir.Lstat(base)
		return err
	})
	return fi, err
}

func (v *view) OpenFile(name string, flag int, mode fs.FileMode) (f *os.File, err error) {
	err = v.at(name, func(dir *os.Root, base string) (err error) {
		f, err = dir.OpenFile(base, flag, mode)
		return err
	})
	return f, err
}

func (v *view) Readlink(name string) (target string, err error) {
	err = v.at(name, func(dir *os.Root, base string) (err error) {
		target, err = dir.Readlink(base)
		return err
	})
	return target, err
}

func (v *view) Remove(name string) error {
	return v.at(name, func(dir *os.Root, base string) error { return dir.Remove(base) })
}

// Rename gives a file another name in its directory.
func (v *view) Rename(from, to string) error {
	return v.at(from, func(dir *os.Root, base string) error { return dir.Rename(base, path.Base(to)) })
}

func (v *view) Chtimes(name string, t time.Time) error {
	return v.at(name, func(dir *os.Root, base string) error { return dir.Chtimes(base, t, t) })
}

// ReadDir lists a directory, which is empty when it is not there or when something else is in its place.
func (v *view) ReadDir(name string) (entries []fs.DirEntry, err error) {
	err = v.in(name, func(dir *os.Root) (err error) {
		entries, err = list(dir)
		return err
	})
	return entries, emptyIfNone(err)
}
