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

// A view is the artifacts directory, with the directories in it that are in use, each opened once: an operation in
// one of them is then one system call, without a walk from the top. A closed directory is opened again. A directory
// that was removed appears empty and refuses new files: a caller that notices this calls forget, and tries again. A
// view is safe for concurrent use.
type view struct {
	root *os.Root

	mu     sync.RWMutex        // read-locked while a directory is used
	opened map[string]*os.Root // by their paths
}

// maxDirs is the limit of open directories: the files of a process are limited, too.
const maxDirs = 64

func newView(root *os.Root) *view { return &view{root: root, opened: map[string]*os.Root{".": root}} }

// close closes all directories.
func (v *view) close() error {
	v.forget()
	return v.root.Close()
}

// forget closes the directories below the top, because they may have been replaced.
func (v *view) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.drop()
}

// drop closes the directories; v.mu must be held.
func (v *view) drop() {
	for dir, d := range v.opened {
		if d != v.root {
			_ = d.Close() // nothing was written through it
			delete(v.opened, dir)
		}
	}
}

// in calls f with an open directory.
func (v *view) in(dir string, f func(dir *os.Root) error) error {
	for {
		v.mu.RLock()
		if d := v.opened[dir]; d != nil {
			defer v.mu.RUnlock()
			return f(d)
		}
		v.mu.RUnlock()
		if err := v.open(dir); err != nil {
			return err
		}
	}
}

func (v *view) open(dir string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.opened) > maxDirs {
		v.drop()
	}
	_, err := v.enter(dir)
	return err
}

// enter opens a directory step by step; v.mu must be held. A planted link is not a directory: even a link that stays
// inside would make two objects share their files.
func (v *view) enter(dir string) (*os.Root, error) {
	if d := v.opened[dir]; d != nil {
		return d, nil
	}
	parent, err := v.enter(path.Dir(dir))
	if err != nil {
		return nil, err
	}
	d, err := enter(parent, path.Base(dir))
	if err != nil {
		return nil, withPath(dir, err)
	}
	v.opened[dir] = d
	return d, nil
}

// makeDir creates a directory and its missing parents, unless it exists.
func (v *view) makeDir(dir string) error {
	err := v.in(dir, func(*os.Root) error { return nil })
	if errors.Is(err, fs.ErrNotExist) {
		err = v.make(dir)
	}
	if err != nil {
		return &DirectoryError{err}
	}
	return nil
}

func (v *view) make(dir string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.mkdir(dir)
}

func (v *view) mkdir(dir string) error {
	if v.opened[dir] != nil {
		return nil
	}
	if err := v.mkdir(path.Dir(dir)); err != nil {
		return err
	}
	parent, err := v.enter(path.Dir(dir))
	if err == nil {
		err = withPath(dir, parent.Mkdir(path.Base(dir), modeOf(dir)))
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// modeOf returns the mode of a new directory, before the umask.
func modeOf(dir string) fs.FileMode {
	if private := path.Dir(stateDir); dir == private || strings.HasPrefix(dir, private+"/") {
		return dirMode
	}
	return artifactDirMode
}

// at calls f with the directory of a file and the base name of the file. Errors contain its whole path.
func (v *view) at(name string, f func(dir *os.Root, base string) error) error {
	return v.in(path.Dir(name), func(dir *os.Root) error {
		err := f(dir, path.Base(name))
		if pathError, ok := errors.AsType[*fs.PathError](err); ok {
			pathError.Path = name
		}
		return err
	})
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

// Rename renames a file within its directory.
func (v *view) Rename(from, to string) error {
	return v.at(from, func(dir *os.Root, base string) error { return dir.Rename(base, path.Base(to)) })
}

func (v *view) Chtimes(name string, t time.Time) error {
	return v.at(name, func(dir *os.Root, base string) error { return dir.Chtimes(base, t, t) })
}

// ReadDir lists a directory. A missing directory, or a file in its place, is empty.
func (v *view) ReadDir(name string) (entries []fs.DirEntry, err error) {
	err = v.in(name, func(dir *os.Root) error {
		f, err := dir.Open(".")
		if err != nil {
			return err
		}
		defer f.Close()
		entries, err = f.ReadDir(-1)
		return err
	})
	return entries, emptyIfNone(err)
}
