package render

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
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

// The files of a repository, on disk or in a view.

func (r *repository) readDir(path string) ([]fs.DirEntry, error) { return r.view.readDir(path) }

func (r *repository) original(path string) string { return r.view.original(path) }

// within follows the links of a path below the root. For a file of a view it returns the path of the original.
func (r *repository) within(path string) (string, error) {
	if r.view == nil {
		return r.disk.within(r.root, path)
	}
	return r.view.within(path)
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

type outsideError struct{}

func (e *outsideError) Error() string { return "leads out of the repository" }

// Hint explains where a repository begins.
func (e *outsideError) Hint() string { return finding.Root }

func (r *repository) isDir(path string) (bool, error) {
	if r.view.in(path) {
		return r.view.isDir(path)
	}
	mode, err := r.disk.mode(path)
	return mode.IsDir(), err
}

// isFile reports whether a path exists and is not a directory. Reading it reports errors.
func (r *repository) isFile(path string) bool {
	if _, ok := r.view.file(path); ok || r.view.in(path) {
		return ok
	}
	mode, err := r.disk.mode(path)
	return !file.Missing(err) && !mode.IsDir()
}

func (r *repository) isDirectory(path string) bool {
	dir, err := r.isDir(path)
	return err == nil && dir
}

// read reads a file at a path that within returned. The text is shared.
func (r *repository) read(path string) ([]byte, error) {
	if f, ok := r.view.file(path); ok && f.made == nil {
		path = f.original
	}
	if r.view.in(path) {
		return r.view.made(path)
	}
	if text, ok := file.Text(r.ctx, path); ok {
		return text, nil
	}
	return r.disk.read(path)
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

// skips reports whether a directory does not belong to the repository.
func (r *repository) skips(info os.FileInfo) bool {
	if info.Name() == ".git" {
		return true
	}
	return slices.ContainsFunc(r.skip, func(s os.FileInfo) bool { return os.SameFile(s, info) })
}

// directory is a directory with a kustomization file, whose paths are resolved: each one exists, is in the repository, and is not
// an address.
type directory struct {
	repo *repository
	path string // absolute, without links
	file string // its kustomization file
	text []byte // of the file

	object *manifest.Object // represents the file

	kustomization *types.Kustomization
	merges, json  int  // of its patches, those of patchesStrategicMerge at the beginning, and of patchesJson6902 at the end
	empty         bool // the file is empty, which kustomize refuses if it is included
	err           error
	unknown       []*placedError // fields that kustomize refuses, and that the controller drops when it edits the file

	resources map[string]bool // files that contain objects

	files   []string      // that it names, absolute and without links
	dirs    []string      // that it includes
	entries []entryOf     // with which it names them
	sealed  []sealedFile  // that may be encrypted
	remote  []remoteEntry // left out
	flux    bool          // the file holds an object of Flux
}

// entryOf is a path in a kustomization, and the file or directory at it.
type entryOf struct {
	path        string // absolute and without links
	field, text string
	at          []any
}

type sealedFile struct {
	path, shape string // shape is a name whose extension is the format of the decrypted text
	env, patch  bool
}

// remoteEntry is an entry of a kustomization that is not in the repository.
type remoteEntry struct {
	in           *manifest.Object
	pos          manifest.Pos
	field, entry string
}

func (e *remoteEntry) String() string {
	return fmt.Sprintf("%s: %s is left out: only files of the repository are read", e.field, redacted(e.entry))
}

func redacted(entry string) string {
	entry, _, _ = strings.Cut(entry, "?")
	scheme, rest, ok := strings.Cut(entry, "://")
	if !ok {
		return entry
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		rest = "REDACTED@" + rest[at+1:]
	}
	return scheme + "://" + rest
}

type placedError struct {
	at  manifest.Excerpt
	err error
}

func (e *placedError) Error() string { return e.at.Pos.String() + ": " + e.err.Error() }

func (e *placedError) Unwrap() error { return e.err }

// endlessError is the error of a build that would not end, or not soon.
type endlessError struct{ text string }

func (e *endlessError) Error() string { return e.text }
