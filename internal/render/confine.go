package render

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/kustomize"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// maxFileSize bounds one file that a kustomization reads, in bytes.
const maxFileSize = 32 << 20

// confined is what a build sees: the files below one directory, links followed as long as they stay there, with some files
// replaced. It counts what is read and ends with its context.
type confined struct {
	ctx     context.Context
	repo    *repository
	replace map[string][]byte
	what    string                   // is built
	veil    *veil                    // nil for none
	paths   []string                 // that were read
	patched func(kustomize.PatchUse) // records patches, nil for nothing

	lacking bool // something is left out of the build

	failed error // of a kustomization file: the rest is only how it was met
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

// Kustomization returns what the file of a directory says, with certain paths.
func (c *confined) Kustomization(dir string) (*types.Kustomization, string, error) {
	if c.ctx.Err() != nil {
		return nil, "", c.ended()
	}
	d := c.repo.directory(dir)
	if d == nil {
		return nil, "", errors.New("no kustomization file in it")
	}
	c.remember(d.file)
	err := d.err
	switch {
	case err != nil:
	case len(d.unknown) > 0:
		err = d.unknown[0]
	case d.empty:
		err = d.kustomization.CheckEmpty()
	}
	if err == nil {
		err = c.repo.budget.Read(c.what, d.file, len(d.text))
	}
	if err != nil {
		if c.failed == nil {
			c.failed = err
		}
		return nil, "", err
	}
	k, err := c.veil.overKustomization(d.file, d.kustomization)
	if err == nil && c.lacking && len(k.Patches) > 0 {
		own := *k
		c.forgive(d.path, &own)
		k = &own
	}
	return k, d.file, err
}

// Directory is where a path leads, if that is a directory.
func (c *confined) Directory(path string) (string, error) {
	real, err := c.real(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", c.repo.display(path), err)
	}
	dir, err := c.repo.isDir(real)
	if err != nil {
		return "", fmt.Errorf("%s: %w", c.repo.display(path), plainPathError(err))
	}
	if !dir {
		return "", fmt.Errorf("%s: not a directory", c.repo.display(path))
	}
	return real, nil
}

// Check refuses text in place whose aliases expand to too much.
func (c *confined) Check(text []byte) error { return manifest.CheckExpansion(c.what, text) }

// ReadFile reads a file.
func (c *confined) ReadFile(path string) ([]byte, error) {
	if c.ctx.Err() != nil {
		return nil, c.ended()
	}
	path = filepath.Clean(path)
	data, err := c.read(path)
	if err != nil {
		return nil, err
	}
	c.remember(path)
	data = c.veil.over(path, data)
	return data, c.repo.budget.Read(c.what, path, len(data))
}

func (c *confined) ended() error { return context.Cause(c.ctx) }

func (c *confined) read(path string) ([]byte, error) {
	if data, ok := c.replace[path]; ok {
		return data, nil
	}
	real, err := c.repo.within(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.repo.display(path), err)
	}
	if data, ok := c.replace[real]; ok && c.repo.view != nil {
		return data, nil
	}
	data, err := c.repo.read(real)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.repo.display(path), err)
	}
	return data, manifest.CheckExpansion(c.repo.display(path), data)
}

// readFile reads a regular file up to the limit.
func readFile(path string) ([]byte, error) {
	data, err := file.ReadRegular(path, maxFileSize)
	if _, large := errors.AsType[*file.SizeError](err); large {
		return nil, fmt.Errorf("larger than %d MiB", maxFileSize>>20)
	}
	return data, plainPathError(err)
}
