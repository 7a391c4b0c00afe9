package rewrite

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/helmsrc/helmsrc/internal/file"
)

// Errors of [File.Replace], after which the file is as it was.
var (
	// ErrChanged is matched if the file is not as it was read any more.
	ErrChanged = errors.New("the file changed while it was edited")
	// ErrBusy is matched if another process replaces the file at this moment.
	ErrBusy = errors.New("another process edits the file")
	// ErrReadOnly is matched if its mode lets no one write to it.
	ErrReadOnly = errors.New("the file is read-only")
)

const anyWrite fs.FileMode = 0o222

// Replace gives the file another text, in one step: a reader gets the old or the new one. Its mode stays,
// and so does a link that led to it.
func (f *File) Replace(text []byte) (err error) {
	if f.info.Mode().Perm()&anyWrite == 0 {
		return &fs.PathError{Op: "write", Path: f.Name, Err: ErrReadOnly}
	}
	defer func() {
		if err != nil {
			err = &fs.PathError{Op: "write", Path: f.Name, Err: file.Cause(err)}
		}
	}()
	old, unlock, err := lock(f.path)
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.unchanged(old); err != nil {
		return err
	}
	if !replacesOpen {
		_ = old.Close()
	}
	return beside(filepath.Dir(f.path), text, f.info.Mode().Perm(), func(temp string) error { return os.Rename(temp, f.path) })
}

// unchanged compares the file with what was read.
func (f *File) unchanged(opened *os.File) error {
	info, err := opened.Stat()
	if err != nil {
		return err
	}
	now, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	if !os.SameFile(info, f.info) || !os.SameFile(now, f.info) {
		return ErrChanged
	}
	data, err := io.ReadAll(io.LimitReader(opened, int64(len(f.Data))+1))
	if err != nil {
		return err
	}
	if !bytes.Equal(data, f.Data) {
		return ErrChanged
	}
	return nil
}
