package bundle

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// A sink takes the files of a layout.
type sink interface {
	write(name string, size int64, from io.Reader) error
	close() error
	size() int64 // after close
}

func newSink(name string, directory bool) (sink, error) {
	if directory {
		return &dirSink{dir: name}, os.Mkdir(name, 0o777)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	return &tarSink{file: f, tar: tar.NewWriter(f)}, err
}

type tarSink struct {
	file  *os.File
	tar   *tar.Writer
	bytes int64
}

func (s *tarSink) write(name string, size int64, from io.Reader) error {
	if err := s.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644}); err != nil {
		return err
	}
	_, err := io.Copy(s.tar, from)
	return err
}

func (s *tarSink) close() error {
	err := errors.Join(s.tar.Close(), s.file.Sync())
	info, failed := s.file.Stat()
	if failed == nil {
		s.bytes = info.Size()
	}
	return errors.Join(err, failed, s.file.Close())
}

func (s *tarSink) size() int64 { return s.bytes }

type dirSink struct {
	dir   string
	bytes int64
}

func (s *dirSink) write(name string, size int64, from io.Reader) error {
	name = filepath.Join(s.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	s.bytes += size
	return errors.Join(err, f.Sync(), f.Close())
}

func (s *dirSink) close() error { return nil }

func (s *dirSink) size() int64 { return s.bytes }
