package render

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/generate"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// maxTexts is the limit, in bytes, of cached files that are not part of the input.
const maxTexts = 64 << 20

// maxWalk is the limit of entries in a directory that a kustomization is generated for.
const maxWalk = 100_000

// disk caches the file system for a run: a link is followed once and a file opened once, for all clusters and builds. It may be
// used by several goroutines.
type disk struct {
	cwd func() (string, error) // the working directory: filepath.Abs looks it up on each call

	mu    sync.Mutex
	reals map[string]string      // directories without links
	modes map[string]fs.FileMode // of existing files
	texts map[string][]byte      // of files, by absolute paths without links
	roots map[string]string      // of the Git work trees around directories, "" for none
	kept  int                    // bytes of texts that are only kept here
}

func newDisk() *disk {
	return &disk{cwd: sync.OnceValues(os.Getwd), reals: map[string]string{}, modes: map[string]fs.FileMode{}, texts: map[string][]byte{}, roots: map[string]string{}}
}

func (d *disk) hold(path string, f *manifest.File) {
	if text := f.Data(); text != nil {
		d.texts[path] = text
	}
}

// absolute returns the absolute path of a file or a directory without links. Standard input counts as a file of the working
// directory.
func (d *disk) absolute(path string) (string, error) {
	abs, err := "", error(nil)
	if filepath.IsLocal(path) { // on Windows, other relative paths may be of another drive
		abs, err = d.cwd()
		abs = filepath.Join(abs, path)
	} else {
		abs, err = filepath.Abs(path)
	}
	if err != nil || path == manifest.StdinName {
		return abs, err
	}
	return d.real(abs)
}

// repository returns the root of the Git work tree around a directory, "" for none. The path is absolute and without links.
func (d *disk) repository(dir string) string {
	root, ok := known(&d.mu, d.roots, dir)
	if ok {
		return root
	}
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
		root = dir
	} else if parent := filepath.Dir(dir); parent != dir {
		root = d.repository(parent)
	}
	learn(&d.mu, d.roots, dir, root)
	return root
}

// real returns a clean and absolute path without its links.
func (d *disk) real(path string) (string, error) {
	dir, name := filepath.Split(path)
	// On Windows, EvalSymlinks also restores the case of names as they are on the disk.
	if name == "" || runtime.GOOS == "windows" {
		return filepath.EvalSymlinks(path)
	}
	dir = filepath.Clean(dir)
	real, ok := known(&d.mu, d.reals, dir)
	if !ok {
		var err error
		if real, err = d.real(dir); err != nil {
			return filepath.EvalSymlinks(path) // for its error
		}
		learn(&d.mu, d.reals, dir, real)
	}
	path = filepath.Join(dir, name)
	own := filepath.Join(real, name)
	if _, ok := known(&d.mu, d.modes, own); ok {
		return own, nil
	}
	info, err := os.Lstat(own)
	if err != nil || info.Mode()&fs.ModeSymlink != 0 {
		return filepath.EvalSymlinks(path)
	}
	learn(&d.mu, d.modes, own, info.Mode()) // it is not a link
	return own, nil
}

func (d *disk) mode(path string) (fs.FileMode, error) {
	if mode, ok := known(&d.mu, d.modes, path); ok {
		return mode, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Mode(), nil
}

func inside(root, path string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, string(filepath.Separator))+string(filepath.Separator))
}

// plainPathError returns the reason alone: the caller knows the path.
func plainPathError(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// read reads a regular file, by an absolute path without links. The text is shared.
func (d *disk) read(path string) ([]byte, error) {
	if text, ok := known(&d.mu, d.texts, path); ok {
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

// maxFileSize is the limit, in bytes, of a file that a kustomization reads.
const maxFileSize = 32 << 20

// readFile reads a regular file up to the limit.
func readFile(path string) ([]byte, error) {
	data, err := file.ReadRegular(path, maxFileSize)
	if _, large := errors.AsType[*file.SizeError](err); large {
		return nil, fmt.Errorf("larger than %d MiB", maxFileSize>>20)
	}
	return data, plainPathError(err)
}

// known and learn read and write a cache by path. Several goroutines may use it.
func known[V any](mu *sync.Mutex, m map[string]V, path string) (V, bool) {
	mu.Lock()
	defer mu.Unlock()
	v, ok := m[path]
	return v, ok
}

func learn[V any](mu *sync.Mutex, m map[string]V, path string, v V) {
	mu.Lock()
	defer mu.Unlock()
	m[path] = v
}

// absolute returns the absolute path of a directory without links.
func absolute(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// displays returns a function that shows paths as the user wrote them: below the named directories, or relative to the working
// directory if that is shorter.
func displays(named map[string]string) func(string) string {
	cwd, err := os.Getwd()
	if err == nil {
		if real, err := filepath.EvalSymlinks(cwd); err == nil {
			cwd = real
		}
	}
	return func(path string) string {
		best, bestLength := "", -1
		for real, name := range named {
			if inside(real, path) && len(real) > bestLength {
				rel, err := filepath.Rel(real, path)
				if err != nil {
					continue
				}
				best, bestLength = filepath.Join(name, rel), len(real)
			}
		}
		if bestLength >= 0 {
			return best
		}
		if rel, err := filepath.Rel(cwd, path); cwd != "" && err == nil && len(rel) < len(path) {
			return rel
		}
		return path
	}
}

// join returns the path of an entry in a file (with slashes, relative to a directory).
func join(dir, path string) string { return filepath.Join(dir, filepath.FromSlash(path)) }

// relative returns a path as kustomization files have it: it never looks like an address.
func relative(path string) string {
	path = filepath.ToSlash(filepath.Clean(filepath.FromSlash(path)))
	if path == ".." || strings.HasPrefix(path, "../") {
		return path
	}
	return "./" + path
}

func list(ctx context.Context, dir, ignore string, filter tree.Filter) (*generate.Tree, error) {
	root, err := file.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	limits := tree.Limits{Entries: maxWalk}
	rules, err := tree.SourceRules(ctx, root, ignore, tree.Options{Filter: filter, Limits: limits})
	if err != nil {
		return nil, err
	}
	names, dirs, err := tree.List(ctx, root, tree.Options{Filter: tree.All(filter, rules.Choose), Limits: limits})
	if err != nil {
		return nil, err
	}
	t := generate.NewTree()
	for _, name := range names {
		if err := t.Add(name, generate.File{Content: onDisk(filepath.Join(dir, filepath.FromSlash(name)))}); err != nil {
			return nil, err
		}
	}
	for _, name := range dirs {
		if !t.IsDir(name) && hasFiles(root, name) {
			if err := t.AddDir(name); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// hasFiles reports whether a directory contains files, at any depth. Git does not track other directories.
func hasFiles(root *os.Root, dir string) bool {
	found := false
	_ = fs.WalkDir(root.FS(), dir, func(_ string, e fs.DirEntry, err error) error {
		if found = err == nil && !e.IsDir(); found {
			return fs.SkipAll
		}
		return err
	})
	return found
}

type onDisk string

func (f onDisk) Bytes() ([]byte, error) { return readFile(string(f)) }
