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

// Errors of [File.Replace]. The file is unchanged after them.
var (
	// ErrChanged is matched if the file was changed since it was read.
	ErrChanged = errors.New("the file changed while it was edited")
	// ErrBusy is matched if another process is replacing the file.
	ErrBusy = errors.New("another process edits the file")
	// ErrReadOnly is matched if the mode of the file does not allow any user to write it.
	ErrReadOnly = errors.New("the file is read-only")
)

const anyWrite fs.FileMode = 0o222

// Replace replaces the text of the file in one step: a reader sees the old or the new text. It keeps the mode,
// and a link to the file.
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

// unchanged returns [ErrChanged] if the file differs from the one that was read.
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
