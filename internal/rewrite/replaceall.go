package rewrite

import (
	"errors"
	"fmt"
	"os"
)

// Replacement is a new text for a file.
type Replacement struct {
	File *File
	Text []byte
}

// Writable reports whether a file can be replaced: the error is that of [File.Replace] for a file that no user may
// write.
func (f *File) Writable() error {
	if f.info.Mode().Perm()&anyWrite == 0 {
		return ErrReadOnly
	}
	return nil
}

// ReplaceAll replaces all files or none: if one fails, the files before it get their old text again. The error is that of
// [File.Replace], joined with errors of files that could not be restored.
func ReplaceAll(list []Replacement) error {
	for i, r := range list {
		err := r.File.Replace(r.Text)
		if err == nil {
			continue
		}
		for _, done := range list[:i] {
			if back := done.restore(); back != nil {
				err = errors.Join(err, fmt.Errorf("%s is edited already: %w", done.File.Name, back))
			}
		}
		return err
	}
	return nil
}

func (r Replacement) restore() error {
	info, err := os.Stat(r.File.path)
	if err != nil {
		return err
	}
	now := &File{Name: r.File.Name, Data: r.Text, path: r.File.path, info: info}
	return now.Replace(r.File.Data)
}
