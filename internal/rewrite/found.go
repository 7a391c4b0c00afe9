// Package rewrite reads the files that are to be edited, and replaces each in one step. It does not parse them.
package rewrite

import (
	"context"
	"io/fs"

	"github.com/helmsrc/helmsrc/internal/file"
)

// maxFile is the limit of the size of a file, in bytes: more than any manifest has.
const maxFile = 16 << 20

// File is a file that was read. Two names of one file give one File, under the first name.
type File struct {
	Name string // as it was named or found
	Data []byte

	path string // without links
	info fs.FileInfo
}

// Found are files that were read. The zero value has no files.
type Found struct {
	Files  []*File
	Errors []error // about files that cannot be read

	known map[string]*File // by the path without links; nil for a file that cannot be read
}

// File returns the file with a name, nil if it was not read.
func (f *Found) File(name string) *File {
	path, err := file.Real(name)
	if err != nil {
		return nil
	}
	return f.known[path]
}

// Read reads more files, and returns an error for each that cannot be read. It follows a link to a file, but leaves out a name that
// leads over a link out of a repository: the author of the link would choose which file is edited.
func (f *Found) Read(ctx context.Context, names []string) []error {
	before := len(f.Errors)
	if f.known == nil {
		f.known = map[string]*File{}
	}
	for _, name := range names {
		path, err := file.Real(name)
		if _, known := f.known[path]; known || err != nil || ctx.Err() != nil || file.Outside(name) {
			continue
		}
		if f.known[path], err = open(name, path, maxFile); err != nil {
			f.Errors = append(f.Errors, err)
			continue
		}
		f.Files = append(f.Files, f.known[path])
	}
	return f.Errors[before:]
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
