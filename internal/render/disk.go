package render

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// maxTexts bounds, in bytes, what is kept of the files that are no part of the input.
const maxTexts = 64 << 20

// disk is what a run knows of the disk: a link is followed once, a file opened once, however many clusters and builds have
// to do with it. A nil disk knows nothing. It may be used by several goroutines.
type disk struct {
	mu    sync.Mutex
	cwd   string
	reals map[string]string      // directories without links
	modes map[string]fs.FileMode // of what is there
	texts map[string][]byte      // of files, by absolute paths without links
	kept  int                    // bytes of them that nothing else keeps
}

func newDisk() *disk {
	return &disk{reals: map[string]string{}, modes: map[string]fs.FileMode{}, texts: map[string][]byte{}}
}

func (d *disk) hold(path string, f *manifest.File) {
	if text := f.Data(); text != nil {
		d.texts[path] = text
	}
}

// absolute is the absolute path of a file or a directory without links. What comes through standard input counts as a file of the
// working directory.
func (d *disk) absolute(path string) (string, error) {
	if d == nil {
		return absolute(path)
	}
	if !filepath.IsAbs(path) {
		d.mu.Lock()
		if d.cwd == "" {
			d.cwd, _ = filepath.Abs(".")
		}
		cwd := d.cwd
		d.mu.Unlock()
		if cwd == "" {
			return absolute(path)
		}
		if path == manifest.StdinName {
			return filepath.Join(cwd, path), nil
		}
		path = filepath.Join(cwd, path)
	}
	return d.real(filepath.Clean(path))
}

// real is a clean and absolute path without its links.
func (d *disk) real(path string) (string, error) {
	dir, name := filepath.Split(path)
	// On Windows it also has names as they stand on the disk, in their own case.
	if d == nil || name == "" || runtime.GOOS == "windows" {
		return filepath.EvalSymlinks(path)
	}
	dir = filepath.Clean(dir)
	real, ok := d.realOf(dir)
	if !ok {
		var err error
		if real, err = d.real(dir); err != nil {
			return filepath.EvalSymlinks(path) // for its error
		}
		d.mu.Lock()
		d.reals[dir] = real
		d.mu.Unlock()
	}
	path = filepath.Join(dir, name)
	own := filepath.Join(real, name)
	if _, ok := d.known(own); ok {
		return own, nil
	}
	info, err := os.Lstat(own)
	if err != nil || info.Mode()&fs.ModeSymlink != 0 {
		return filepath.EvalSymlinks(path)
	}
	d.learn(own, info.Mode())
	return own, nil
}

func (d *disk) realOf(dir string) (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	real, ok := d.reals[dir]
	return real, ok
}

func (d *disk) known(path string) (fs.FileMode, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	mode, ok := d.modes[path]
	return mode, ok
}

// learn keeps what is at a path that is no link.
func (d *disk) learn(path string, mode fs.FileMode) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.modes[path] = mode
}

func (d *disk) mode(path string) (fs.FileMode, error) {
	if d != nil {
		if mode, ok := d.known(path); ok {
			return mode, nil
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Mode(), nil
}

// within follows the links of an absolute path and refuses to leave the root.
func (d *disk) within(root, path string) (string, error) {
	path = filepath.Clean(path)
	if !inside(root, path) {
		return "", &outsideError{}
	}
	real, err := d.real(path)
	if err != nil {
		return "", plainPathError(err)
	}
	if !inside(root, real) {
		return "", &outsideError{}
	}
	return real, nil
}

// read reads a regular file, by an absolute path without links. The text is shared.
func (d *disk) read(path string) ([]byte, error) {
	if d == nil {
		return readFile(path)
	}
	d.mu.Lock()
	text, ok := d.texts[path]
	d.mu.Unlock()
	if ok {
		return text, nil
	}
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kept+len(text) <= maxTexts {
		d.kept += len(text)
		d.texts[path] = text
	}
	return text, nil
}
