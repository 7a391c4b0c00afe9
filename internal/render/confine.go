package render

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

const (
	// maxFileSize bounds one file that a kustomization reads, maxBuildBytes and maxBuildReads all of one build. Bases
	// that are used in many ways are read as often.
	maxFileSize   = 32 << 20
	maxBuildBytes = 128 << 20
	maxBuildReads = 50_000
)

// errReadOnly answers what only a program that edits kustomizations would ask for.
var errReadOnly = errors.New("read only")

// confined is the file system that kustomize sees: the files below one directory, links followed as long as they stay
// there, with some files replaced. It counts what is read and ends with its context.
type confined struct {
	ctx     context.Context
	repo    *repository
	root    string // absolute, without links
	replace map[string][]byte
	view    *view // nil for files on disk
	display func(string) string
	load    func(c *confined, path string) ([]byte, bool, error) // what is not read as it is written
	budget  *budget
	guard   *guard
	veil    *veil    // nil for none
	paths   []string // that were read

	lacking bool // something is left out of the build

	failed error // of a kustomization file, which kustomize takes for one that is not there
}

// budget is what one build may read, with those that it needs before. The mutex is for builds that were given up.
type budget struct {
	mu           sync.Mutex
	reads, bytes int
}

func (b *budget) spend(reads, bytes int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reads += reads
	b.bytes += bytes
	switch {
	case b.reads > maxBuildReads:
		return fmt.Errorf("a build reads more than %d files", maxBuildReads)
	case b.bytes > maxBuildBytes:
		return fmt.Errorf("a build reads more than %d MiB", maxBuildBytes>>20)
	}
	return nil
}

// real is where a path leads. What leads out of the root is not there.
func (c *confined) real(path string) (string, error) {
	if _, ok := c.replace[filepath.Clean(path)]; ok {
		return filepath.Clean(path), nil
	}
	return c.repo.within(path)
}

func inside(root, path string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, string(filepath.Separator))+string(filepath.Separator))
}

// outsideError is a path that leads out of the repository.
type outsideError struct{}

func (e *outsideError) Error() string { return "leads out of the repository" }

// Hint says where that begins.
func (e *outsideError) Hint() string {
	return "a repository begins at the nearest directory with a .git above the one given with -f, else at that one"
}

// plainPathError returns the reason alone: the caller knows the path.
func plainPathError(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

func (c *confined) ReadFile(path string) ([]byte, error) {
	if c.ctx.Err() != nil {
		return nil, c.ended()
	}
	if err := c.budget.spend(1, 0); err != nil {
		return nil, err
	}
	data, err := c.read(filepath.Clean(path))
	if err == nil {
		c.remember(filepath.Clean(path))
		data = c.veil.over(filepath.Clean(path), data)
		err = c.budget.spend(0, len(data))
	}
	if err != nil {
		return nil, err
	}
	c.guard.reads(path, len(data))
	return data, nil
}

// ended is why the context did.
func (c *confined) ended() error { return context.Cause(c.ctx) }

func (c *confined) read(path string) ([]byte, error) {
	if data, ok := c.replace[path]; ok {
		return data, nil
	}
	real, err := c.repo.within(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.display(path), err)
	}
	if data, ok := c.replace[real]; ok && c.view != nil {
		return data, nil
	}
	// A link may call a file by another name than its own: what kustomize asks for decides.
	for _, name := range []string{path, real} {
		if data, ok, err := c.load(c, name); ok || err != nil {
			if c.failed == nil {
				c.failed = err
			}
			return data, err
		}
	}
	data, err := c.repo.read(real)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.display(path), err)
	}
	return data, manifest.CheckExpansion(c.display(path), data)
}

// readFile reads a regular file up to the limit.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, plainPathError(err)
	case info.IsDir():
		return nil, errors.New("is a directory")
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case info.Size() > maxFileSize:
		return nil, fmt.Errorf("larger than %d MiB", maxFileSize>>20)
	}
	data, err := os.ReadFile(path)
	return data, plainPathError(err)
}

func (c *confined) IsDir(path string) bool {
	real, err := c.real(path)
	if err != nil {
		return false
	}
	dir, err := c.repo.isDir(real)
	return err == nil && dir
}

func (c *confined) Exists(path string) bool {
	real, err := c.real(path)
	if err != nil {
		return false
	}
	if _, ok := c.replace[real]; ok {
		return true
	}
	_, err = c.repo.isDir(real)
	return err == nil
}

func (c *confined) CleanedAbs(path string) (filesys.ConfirmedDir, string, error) {
	real, err := c.real(path)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", c.display(path), err)
	}
	if c.view != nil && !c.IsDir(real) {
		real = filepath.Clean(path) // where it is in the artifact
	}
	if c.IsDir(real) {
		return filesys.ConfirmedDir(real), "", nil
	}
	return filesys.ConfirmedDir(filepath.Dir(real)), filepath.Base(real), nil
}

func (c *confined) ReadDir(path string) ([]string, error) {
	real, err := c.real(path)
	if err != nil {
		return nil, err
	}
	entries, err := c.view.readDir(real)
	if err != nil {
		return nil, plainPathError(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

func (c *confined) Glob(pattern string) ([]string, error) {
	if !inside(c.root, filepath.Clean(pattern)) {
		return nil, nil
	}
	found, err := c.view.glob(pattern)
	return slices.DeleteFunc(found, func(name string) bool { return !c.Exists(name) }), err
}

func (c *confined) Walk(string, filepath.WalkFunc) error { return errReadOnly }
func (c *confined) Open(string) (filesys.File, error)    { return nil, errReadOnly }
func (c *confined) Create(string) (filesys.File, error)  { return nil, errReadOnly }
func (c *confined) Mkdir(string) error                   { return errReadOnly }
func (c *confined) MkdirAll(string) error                { return errReadOnly }
func (c *confined) RemoveAll(string) error               { return errReadOnly }
func (c *confined) WriteFile(string, []byte) error       { return errReadOnly }
