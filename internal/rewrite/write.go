package rewrite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/store"
)

// ErrIrregular is matched if a name is that of a directory, a pipe or a device.
var ErrIrregular = errors.New("not a regular file")

// Read reads a file of at most limit bytes that is to be replaced. For a larger file, it returns a [*file.SizeError].
func Read(name string, limit int64) (*File, error) {
	if file.Outside(name) {
		return nil, &fs.PathError{Op: "read", Path: name, Err: file.ErrOutside}
	}
	path, err := file.Real(name)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: ErrIrregular}
	}
	return open(name, path, limit)
}

// Create writes a new file in one step: a reader sees either no file or all of it. If the file exists, the error matches
// [fs.ErrExist].
func Create(name string, text []byte) (err error) {
	defer func() {
		if err != nil {
			err = &fs.PathError{Op: "write", Path: name, Err: file.Cause(err)}
		}
	}()
	return beside(filepath.Dir(name), text, created, func(temp string) error {
		if _, err := os.Lstat(name); err == nil {
			return fs.ErrExist
		}
		err := os.Link(temp, name) // which does not replace a file that was created in the meantime
		if err != nil && !errors.Is(err, fs.ErrExist) {
			err = exclusive(name, text) // a file system without hard links
		}
		return err
	})
}

// Write writes a file in one step, whether it exists or not. It replaces a link instead of following it.
func Write(name string, text []byte) error {
	return beside(filepath.Dir(name), text, 0, func(temp string) error { return os.Rename(temp, name) })
}

// beside writes a text to a temporary file on the file system of a directory, and calls rename with it. The next run that
// writes to the directory removes the files of a killed run. With mode 0, the file gets the mode of any new file of the
// user.
func beside(dir string, text []byte, mode fs.FileMode, rename func(temp string) error) error {
	scratch := store.Scratch{Parent: dir, Hidden: true}
	at, err := scratch.Dir()
	if err != nil {
		return err
	}
	defer func() { _ = scratch.Close() }() // files that cannot be removed now are removed by the next run
	temp, err := os.OpenFile(filepath.Join(at, "text"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = temp.Write(text)
	if err == nil && mode != 0 {
		err = temp.Chmod(mode)
	}
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return rename(temp.Name())
}

// created is the mode of a new file, which is to be committed.
const created fs.FileMode = 0o644

// exclusive writes a new file, and removes it after an error. A reader may see a part of it.
func exclusive(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, created)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// Writable returns an error if a file of this name cannot be written.
func Writable(name string) error {
	if file.Outside(name) || file.Outside(filepath.Dir(name)) {
		return &fs.PathError{Op: "write", Path: name, Err: file.ErrOutside}
	}
	info, err := os.Stat(name)
	_, linked := os.Readlink(name)
	switch {
	case err != nil && linked == nil, err == nil && !info.Mode().IsRegular(): // a dangling link, too
		return &fs.PathError{Op: "write", Path: name, Err: ErrIrregular}
	case err == nil && info.Mode().Perm()&anyWrite == 0:
		return &fs.PathError{Op: "write", Path: name, Err: ErrReadOnly}
	}
	if path, err := filepath.EvalSymlinks(name); err == nil {
		name = path
	}
	scratch := store.Scratch{Parent: filepath.Dir(name), Hidden: true}
	_, err = scratch.Dir()
	if err = errors.Join(err, scratch.Close()); err != nil {
		return &fs.PathError{Op: "write", Path: name, Err: file.Cause(err)}
	}
	return nil
}
