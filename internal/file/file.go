// Package file opens and reads files, in bounded memory and without waiting beyond the end of a context. All other packages
// read the disk through it. It does not interpret the content.
package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// SizeError reports that a file is too large. A function that also returns data returns it up to the first byte beyond Limit.
type SizeError struct{ Limit int64 }

func (e *SizeError) Error() string { return fmt.Sprintf("larger than %d bytes", e.Limit) }

// Read returns the content of a file, which may be a pipe or a device, such as <(...) of a shell. It waits for the content
// until the context ends.
func Read(ctx context.Context, name string, limit int64) ([]byte, error) {
	if text, ok := Text(ctx, name); ok {
		return text, nil
	}
	data, err := ReadRegular(name, limit)
	if errors.Is(err, ErrIrregular) {
		return ReadAll(ctx, &lazy{name: name}, limit)
	}
	return data, err
}

// ReadRegular returns the content of a regular file.
func ReadRegular(name string, limit int64) ([]byte, error) { return bounded(limit)(Open(name)) }

// ReadInside reads a file that no user named, like [ReadRegular]. A link out of its repository matches [ErrOutside].
func ReadInside(name string, limit int64) ([]byte, error) { return bounded(limit)(OpenInside(name)) }

func bounded(limit int64) func(*os.File, error) ([]byte, error) {
	return func(f *os.File, err error) ([]byte, error) {
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return Bounded(f, limit)
	}
}

// Cause strips the path from an error: the user knows the file by another name, or the caller adds the name.
func Cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return Cause(e.Err)
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// Missing reports whether an error means that no file of that name exists. An unreadable file is not missing.
func Missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// ReadAll reads a file that may never end or never begin: a terminal, a pipe. When the context ends it returns, without
// stopping the read.
func ReadAll(ctx context.Context, r io.Reader, limit int64) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := Bounded(r, limit)
		if f, ok := r.(*lazy); ok {
			f.close()
		}
		done <- result{data, err}
	}()
	select {
	case got := <-done:
		return got.data, got.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Bounded reads at most limit bytes. A larger text is a *[SizeError].
func Bounded(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > limit:
		return data, &SizeError{limit}
	}
	return data, nil
}

// Open opens a regular file. [ErrIrregular] is matched for a pipe, a socket or a device. It checks the type before it opens:
// opening a pipe would let its writer continue. It does not wait for a pipe that replaces the file meanwhile either.
func Open(name string) (*os.File, error) {
	return open(name, os.Stat, os.OpenFile)
}

// OpenInside opens a regular file that no user named. [ErrOutside] is matched if a link leads out of its repository.
func OpenInside(name string) (*os.File, error) {
	if Outside(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrOutside}
	}
	return Open(name)
}

// OpenIn opens like [Open] a file below a root, which no link leads out of.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	return open(name, root.Stat, root.OpenFile)
}

func open(name string, stat func(string) (fs.FileInfo, error), openFile func(string, int, fs.FileMode) (*os.File, error)) (*os.File, error) {
	info, err := stat(name)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = &fs.PathError{Op: "open", Path: e.Path, Err: e.Err}
	}
	if err == nil {
		err = Regular(name, info)
	}
	if err != nil {
		return nil, err
	}
	f, err := openFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = Regular(name, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Regular returns an error for a file that is not regular.
func Regular(name string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return &fs.PathError{Op: "open", Path: name, Err: ErrDirectory}
	case !info.Mode().IsRegular():
		return &fs.PathError{Op: "open", Path: name, Err: ErrIrregular}
	}
	return nil
}

// OpenRoot opens a directory. It checks the type before it opens, as [Open] does.
func OpenRoot(name string) (*os.Root, error) {
	info, err := os.Stat(name)
	if err == nil && !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errNoDirectory}
	}
	return os.OpenRoot(name)
}

// ReadDir lists a directory in the order of the names. A file that is not a directory is an error that is not [Missing].
func ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(name)
	if info, failed := os.Stat(name); err != nil && failed == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: errNoDirectory}
	}
	return entries, err
}

// ReadDirInside lists a directory that no user named, like [ReadDir]. A link out of its repository matches [ErrOutside].
func ReadDirInside(name string) ([]fs.DirEntry, error) {
	if Outside(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrOutside}
	}
	return ReadDir(name)
}

// lazy opens its file at the first read, because opening a pipe already waits for the other end.
type lazy struct {
	name string
	file *os.File
}

func (f *lazy) Read(p []byte) (n int, err error) {
	if f.file == nil {
		if f.file, err = os.Open(f.name); err != nil {
			return 0, err
		}
	}
	return f.file.Read(p)
}

func (f *lazy) close() {
	if f.file != nil {
		_ = f.file.Close()
	}
}

// The reasons why a file is not opened.
var (
	ErrDirectory   = errors.New("is a directory")
	ErrIrregular   = errors.New("not a regular file")
	ErrOutside     = errors.New("a link leads out of the repository")
	errNoDirectory = errors.New("not a directory")
)

// Exists reports whether a file or directory of this name exists.
func Exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// IsDir reports whether a name is that of a directory.
func IsDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// Same reports whether two names refer to the same file or directory.
func Same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
