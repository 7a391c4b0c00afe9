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

// repository is a tree of files: a checkout, or the directory that replaces a source.
type repository struct {
	ctx     context.Context // of the run
	root    string          // absolute, without links
	display func(string) string
	skip    []os.FileInfo // directories that do not belong to it
	view    *view         // of an artifact, whose files are elsewhere; nil for files on disk
	disk    *disk         // shared by the run

	rules  func() *tree.Rules // of the root
	budget *kustomize.Budget  // of all builds of the run

	mu      sync.Mutex // of the maps
	dirs    map[string]*directory
	parsed  map[string]*manifest.File // by absolute path without links; those of the input too
	ignored map[string]*tree.Rules    // ignore rules, by the patterns of the source
	ignores map[string]bool           // whether a directory has an ignore file

	rulesErr error // of an ignore file
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

// skips reports whether a directory does not belong to the repository.
func (r *repository) skips(info os.FileInfo) bool {
	if info.Name() == ".git" {
		return true
	}
	return slices.ContainsFunc(r.skip, func(s os.FileInfo) bool { return os.SameFile(s, info) })
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
