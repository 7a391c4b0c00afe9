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

// maxFileSize is the limit, in bytes, of a file that a kustomization reads.
const maxFileSize = 32 << 20

// confined is the file system of a build: the files below one directory, with some of them replaced. It follows links inside of
// the directory only, counts the bytes that are read, and ends with its context.
type confined struct {
	ctx     context.Context
	repo    *repository
	replace map[string][]byte
	what    string                   // the name of the build, for messages
	veil    *veil                    // nil for no veil
	paths   []string                 // that were read
	patched func(kustomize.PatchUse) // records patches, may be nil

	lacking bool // something is left out of the build

	failed error // the error of a kustomization file; kustomize only adds context
}

// real follows the links of a path. A path that leads out of the root is an error.
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

// Hint explains where a repository begins.
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

// Kustomization returns the kustomization of a directory, with resolved paths, and its file.
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

// Directory resolves the path of a directory.
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

// Check refuses inline text whose aliases expand beyond the limit.
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
