package kustomize

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/ifc"
	"sigs.k8s.io/kustomize/api/types"
)

// Source is the file system of a build.
type Source interface {
	// Kustomization returns the kustomization of a directory, and the path of its file. A build does not change it.
	Kustomization(dir string) (*types.Kustomization, string, error)
	// Directory returns the path of a directory without links. For another path it returns an error.
	Directory(path string) (string, error)
	// ReadFile reads a file. It returns an error for text that YAML aliases expand too much.
	ReadFile(path string) ([]byte, error)
	// Check returns an error for inline text that YAML aliases expand too much.
	Check(text []byte) error
}

// loader reads files by their names in a kustomization. It never uses a network.
type loader struct {
	build    *Build
	root     string // without links
	referrer *loader
}

var _ ifc.Loader = (*loader)(nil)

func (l *loader) Repo() string   { return "" }
func (l *loader) Root() string   { return l.root }
func (l *loader) Cleanup() error { return nil }

func (l *loader) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(l.root, filepath.FromSlash(name))
}

// AddressError is the error of an address in place of a path.
type AddressError struct {
	Field   string // of the kustomization, "" if not known
	Address string
}

func (e *AddressError) Error() string { return "only files of the repository are read" }

// EntryError is the error of an entry in a kustomization file, or of the file.
type EntryError struct {
	File  string // the kustomization file
	Field string // "" for the file
	Index int    // in the list of the field, of the kustomization that the Source returned
	Path  string // the file that the entry names, may be ""
	Err   error
}

func (e *EntryError) Error() string { return e.Err.Error() }

func (e *EntryError) Unwrap() error { return e.Err }

// entry wraps an error in an EntryError, unless it already has one.
func (t *target) entry(err error, field string, i int, path string) error {
	if _, known := errors.AsType[*EntryError](err); err == nil || known {
		return err
	}
	if path != "" {
		path = t.loader.path(path)
	}
	return &EntryError{filepath.Join(t.at, t.file), field, i, path, err}
}

// placed wraps the error of a plugin in an EntryError, and adds the field and index of its entry to the error of an address.
func (t *target) placed(err error, field string, i int) error {
	if address, ok := errors.AsType[*AddressError](err); ok {
		at := fmt.Sprintf("%s[%d]", field, i)
		if address.Field != "" {
			at += ": " + address.Field
		}
		err = &AddressError{at, address.Address}
	}
	return t.entry(err, field, i, "")
}

func (l *loader) Load(name string) ([]byte, error) {
	if lower := strings.ToLower(name); strings.HasPrefix(lower, "http:") || strings.HasPrefix(lower, "https:") {
		return nil, &AddressError{"", name}
	}
	text, err := l.build.Source.ReadFile(l.path(name))
	if l.build.read += len(text); err == nil && l.build.read > maxRead {
		return nil, fmt.Errorf("a build reads more than %d MiB", maxRead>>20)
	}
	return text, err
}

func (l *loader) New(name string) (ifc.Loader, error) { return l.directory(name) }

// directory returns the loader of an included directory, which must not be or contain a directory that includes it.
func (l *loader) directory(name string) (*loader, error) {
	if name == "" {
		return nil, errors.New("new root cannot be empty")
	}
	root, err := l.build.Source.Directory(l.path(name))
	if err != nil {
		return nil, err
	}
	for at := l; at != nil; at = at.referrer {
		if at.root == root || strings.HasPrefix(at.root, strings.TrimSuffix(root, string(filepath.Separator))+string(filepath.Separator)) {
			return nil, fmt.Errorf("cycle detected: candidate root '%s' contains visited root '%s'", root, at.root)
		}
	}
	return &loader{build: l.build, root: root, referrer: l}, nil
}
