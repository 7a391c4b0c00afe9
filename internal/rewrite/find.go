// Package rewrite finds the YAML files that are to be edited, and replaces each in one step. It does not parse
// them.
package rewrite

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/file"
)

const (
	// maxFile is the limit of the size of a file, in bytes: more than any manifest has.
	maxFile = 16 << 20
	// maxFiles is the limit of the files of a run.
	maxFiles = 200_000
)

// File is a file that was read. Two names of one file give one File, under the first name.
type File struct {
	Name string // as it was named or found
	Data []byte

	path string // without links
	info fs.FileInfo
}

// Options choose the files to find.
type Options struct {
	Names     []string // files, directories and globs
	Recursive bool     // descend into directories
	Skip      []string // directories to leave out
}

// Found is the result of Find.
type Found struct {
	Files []*File
	// Outside are links that lead out of their repository, and are not followed.
	Outside []string
	// Errors are about files that cannot be read.
	Errors []error
}

// File returns the file with a name, nil if it was not found.
func (f *Found) File(name string) *File {
	path, err := file.Real(name)
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(f.Files, func(file *File) bool { return file.path == path })
	if i < 0 {
		return nil
	}
	return f.Files[i]
}

// Find reads the files that may hold YAML: named files, and in directories those that end in .yaml or .yml or are called
// Kustomization. It skips directories whose name begins with a dot. It follows a link to a file if it stays in the
// repository of the link, and no link to a directory. It refuses a name that leads over a link out of a repository: the
// author of the link would choose which file is edited.
func Find(ctx context.Context, o Options) *Found {
	f := &finder{ctx: ctx, o: o, found: &Found{}, seen: map[string]bool{}}
	for _, name := range o.Names {
		f.name(name)
	}
	return f.found
}

// Read reads more files by their exact names. It returns an error for each file that cannot be read.
func (f *Found) Read(ctx context.Context, names []string) []error {
	known := len(f.Errors)
	more := &finder{ctx: ctx, found: f, seen: map[string]bool{}}
	for _, file := range f.Files {
		more.seen[file.path] = true
	}
	for _, name := range names {
		if mayHoldYAML(filepath.Base(name)) && !file.Outside(name) {
			more.read(name)
		}
	}
	return f.Errors[known:]
}

type finder struct {
	ctx   context.Context
	o     Options
	found *Found
	seen  map[string]bool // paths without links
}

func (f *finder) fail(err error) { f.found.Errors = append(f.found.Errors, err) }

func (f *finder) name(name string) {
	matches := []string{name}
	if _, err := os.Lstat(name); err != nil && strings.ContainsAny(name, "*?[") {
		matches, _ = filepath.Glob(name) // an invalid glob was refused before
	}
	for _, match := range matches {
		info, err := os.Stat(match)
		switch {
		case err != nil:
			f.fail(err)
		case file.Outside(match) && match == name:
			f.fail(&fs.PathError{Op: "edit", Path: name, Err: file.ErrOutside})
		case file.Outside(match):
			f.found.Outside = append(f.found.Outside, match)
		case info.IsDir():
			f.directory(match, file.Root(match))
		default:
			f.read(match)
		}
	}
}

func (f *finder) directory(dir, root string) {
	if f.ctx.Err() != nil || f.skipped(dir) {
		return
	}
	entries, err := file.ReadDir(dir)
	if err != nil {
		f.fail(err)
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			if f.o.Recursive && !strings.HasPrefix(e.Name(), ".") {
				f.directory(name, root)
			}
		case !mayHoldYAML(e.Name()):
		case e.Type()&fs.ModeSymlink != 0:
			f.link(name, root)
		case e.Type().IsRegular():
			f.read(name)
		}
	}
}

func (f *finder) skipped(dir string) bool {
	return slices.ContainsFunc(f.o.Skip, func(s string) bool { return s != "" && filepath.Clean(s) == filepath.Clean(dir) })
}

// link follows a link to a file inside of the repository.
func (f *finder) link(name, root string) {
	path, err := file.Real(name)
	if err != nil {
		return // a dangling link
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return
	}
	if !file.Below(path, root) {
		f.found.Outside = append(f.found.Outside, name)
		return
	}
	f.read(name)
}

func mayHoldYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") || name == "Kustomization"
}

func (f *finder) read(name string) {
	if f.ctx.Err() != nil {
		return
	}
	path, err := file.Real(name)
	if err != nil || f.seen[path] {
		return
	}
	f.seen[path] = true
	if len(f.seen) == maxFiles+1 {
		f.fail(fmt.Errorf("more than %d files: the others are left out", maxFiles))
	}
	if len(f.seen) > maxFiles {
		return
	}
	read, err := open(name, path, maxFile)
	if err != nil {
		f.fail(err)
		return
	}
	f.found.Files = append(f.found.Files, read)
}

// open reads a regular file at a path without links: a pipe cannot be edited. The open file is identified by Stat on its handle, as
// on Windows the info of a path is only completed when files are compared.
func open(name, path string, limit int64) (*File, error) {
	read := &File{Name: name, path: path}
	f, err := file.Open(path)
	if err == nil {
		defer f.Close()
		read.info, err = f.Stat()
	}
	if err == nil {
		read.Data, err = file.Bounded(f, limit)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: file.Cause(err)}
	}
	return read, nil
}
