package blob

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/digest"
)

// A File is a temporary file with the digest and the size of the written bytes. It is a [fetch.Sink] for one
// goroutine at a time; after the last write, several goroutines may read it.
type File struct {
	file   *os.File
	digest *digest.Writer
	linked bool // has a name in the file system
}

// Create creates an empty temporary file in a directory, which exists until it is closed. If the system allows it, the file
// has no name, so that a killed run leaves no bytes behind.
func Create(dir string) (*File, error) {
	file, err := os.CreateTemp(dir, "")
	if err != nil {
		return nil, withoutName(err)
	}
	f := &File{file: file, digest: digest.NewWriter(godigest.Canonical)}
	f.linked = os.Remove(file.Name()) != nil
	return f, nil
}

// Write implements io.Writer.
func (f *File) Write(b []byte) (int, error) {
	n, err := f.file.Write(b)
	_, _ = f.digest.Write(b[:n]) // a hash takes everything
	return n, withoutName(err)
}

// withoutName removes the name of a temporary file from an error: it differs in every run.
func withoutName(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("a temporary file: %w", failed.Err)
	}
	return err
}

// Reset discards the written bytes. An empty file is left alone: after a truncation, ext4 writes the file to the disk when it is
// closed, although it is removed then.
func (f *File) Reset() error {
	if f.Size() == 0 {
		return nil
	}
	f.digest.Reset()
	if err := f.file.Truncate(0); err != nil {
		return withoutName(err)
	}
	_, err := f.file.Seek(0, io.SeekStart)
	return withoutName(err)
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(b []byte, off int64) (int, error) { return f.file.ReadAt(b, off) }

// Section returns a reader of all written bytes.
func (f *File) Section() *io.SectionReader { return io.NewSectionReader(f, 0, f.Size()) }

// Digest returns the SHA-256 digest of the written bytes.
func (f *File) Digest() digest.Digest { return f.digest.Digest() }

// Size returns the number of written bytes.
func (f *File) Size() int64 { return f.digest.Size() }

// compare returns a *digest.MismatchError if the bytes do not match the digest.
func (f *File) compare(want digest.Digest) error {
	got := f.Digest()
	if want.Algorithm() != got.Algorithm() {
		var err error
		if got, err = want.Algorithm().FromReader(f.Section()); err != nil {
			return err
		}
	}
	if got != want {
		return &digest.MismatchError{Want: want, Got: got}
	}
	return nil
}

// Close discards the file.
func (f *File) Close() error {
	err := f.file.Close()
	if f.linked {
		err = errors.Join(err, os.Remove(f.file.Name()))
	}
	return err
}
