package render

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/helmsrc/helmsrc/internal/kustomize"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// repository is the tree of files that paths are in: a checkout, or what stands in for one.
type repository struct {
	ctx     context.Context // of the run
	root    string          // absolute, without links
	display func(string) string
	skip    []os.FileInfo // directories that are no part of it
	view    *view         // of an artifact, whose files are elsewhere; nil for files on disk
	disk    *disk         // as the run knows it

	rules  func() *tree.Rules // of the root
	budget *kustomize.Budget  // of all builds of the run

	mu      sync.Mutex // of the maps
	dirs    map[string]*directory
	parsed  map[string]*manifest.File // by absolute path without links; those of the input too
	ignored map[string]*tree.Rules    // what is kept out of an artifact, by the patterns of the source
	ignores map[string]bool           // directories, whether they have a file that says so

	rulesErr error // of a file that says so
}

// file reads a file of manifests, once.
func (r *repository) file(path string) (*manifest.File, error) {
	path = r.original(path)
	if f, ok := known(&r.mu, r.parsed, path); ok {
		return f, nil
	}
	data, err := r.read(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.display(path), err)
	}
	f, err := manifest.ParseFile(r.display(path), data)
	if err == nil {
		learn(&r.mu, r.parsed, path, f)
	}
	return f, err
}

// known and learn look up and keep what is known of a path. Mistakes of objects are looked for by several goroutines.
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

// absolute is the absolute path of a directory without links.
func absolute(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// displays makes the function that shows paths as the user wrote them: below the directories that were named, else
// relative to where the program runs, if that is not longer.
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

// skips reports whether a directory is no part of the repository.
func (r *repository) skips(info os.FileInfo) bool {
	if info.Name() == ".git" {
		return true
	}
	return slices.ContainsFunc(r.skip, func(s os.FileInfo) bool { return os.SameFile(s, info) })
}

// join is a path of the repository as it stands in a file: with slashes, relative to a directory.
func join(dir, path string) string { return filepath.Join(dir, filepath.FromSlash(path)) }

// relative is a path as it stands in a kustomization file: it never looks like an address.
func relative(path string) string {
	path = filepath.ToSlash(filepath.Clean(filepath.FromSlash(path)))
	if path == ".." || strings.HasPrefix(path, "../") {
		return path
	}
	return "./" + path
}
