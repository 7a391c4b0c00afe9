// Package file reads files that the user named, in bounded memory and without waiting for longer than a context lasts.
// It does not interpret what is in them.
package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// SizeError says that a file holds more than is allowed. What it goes with ends with the first byte that is too much.
type SizeError struct{ Limit int64 }

func (e *SizeError) Error() string { return fmt.Sprintf("larger than %d bytes", e.Limit) }

// Read returns what is in a file, which may be a pipe or a device: a shell's <(...) is one. It is waited for until the
// context ends.
func Read(ctx context.Context, name string, limit int64) ([]byte, error) {
	if text, ok := Text(ctx, name); ok {
		return text, nil
	}
	info, err := look(name)
	if err != nil {
		return nil, err
	}
	f := &lazy{name: name}
	if !info.Mode().IsRegular() {
		return ReadAll(ctx, f, limit)
	}
	defer f.close()
	return Bounded(f, limit)
}

// ReadAll reads what may never end or never begin: a terminal, a pipe. It is given up, not stopped, when the context
// ends.
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

// Bounded reads at most limit bytes, and a larger text is a *[SizeError].
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

// Open opens a regular file. It looks before it opens: to open a pipe would wait for a writer.
func Open(name string) (*os.File, error) {
	info, err := look(name)
	if err != nil {
		return nil, err
	}
	if err := Regular(name, info); err != nil {
		return nil, err
	}
	return os.Open(name)
}

// Regular returns an error for a file that is not a regular one.
func Regular(name string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return &fs.PathError{Op: "open", Path: name, Err: errDirectory}
	case !info.Mode().IsRegular():
		return &fs.PathError{Op: "open", Path: name, Err: errIrregular}
	}
	return nil
}

// OpenRoot opens a directory, and looks before it does.
func OpenRoot(name string) (*os.Root, error) {
	info, err := look(name)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, &fs.PathError{Op: "open", Path: name, Err: errNoDirectory}
	}
	return os.OpenRoot(name)
}

// look is os.Stat for who is about to open, which is what an error is about.
func look(name string) (fs.FileInfo, error) {
	info, err := os.Stat(name)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = &fs.PathError{Op: "open", Path: e.Path, Err: e.Err}
	}
	return info, err
}

// lazy opens when it is first read, because opening a pipe already waits for the other end.
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

type kindError string

func (e kindError) Error() string { return string(e) }

const (
	errDirectory   kindError = "is a directory"
	errNoDirectory kindError = "not a directory"
	errIrregular   kindError = "not a regular file"
)
