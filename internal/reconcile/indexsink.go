package reconcile

import (
	"io"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
)

// indexSink takes an index and gives it back for a second look.
type indexSink interface {
	fetch.Sink
	io.ReaderAt
	Size() int64
	Digest() godigest.Digest
}

// watchedIndex keeps the errors of a sink apart.
type watchedIndex struct {
	indexSink

	Err error
}

func (w *watchedIndex) Write(b []byte) (int, error) {
	n, err := w.indexSink.Write(b)
	if err != nil {
		w.Err = err
	}
	return n, err
}

// Reset resets the sink.
func (w *watchedIndex) Reset() error {
	w.Err = w.indexSink.Reset()
	return w.Err
}

// A spooledIndex takes an index, or is lent the one in the cache: then nothing is copied.
type spooledIndex struct {
	*blob.File

	lent *lentIndex
}

type lentIndex struct {
	file   io.ReaderAt
	digest digest.Digest
	size   int64
}

// Reset discards what was written, and gives back what was lent.
func (s *spooledIndex) Reset() error {
	s.lent = nil
	return s.File.Reset()
}

// ReadAt implements io.ReaderAt.
func (s *spooledIndex) ReadAt(b []byte, off int64) (int, error) {
	if s.lent != nil {
		return s.lent.file.ReadAt(b, off)
	}
	return s.File.ReadAt(b, off)
}

// Size returns the number of bytes.
func (s *spooledIndex) Size() int64 {
	if s.lent != nil {
		return s.lent.size
	}
	return s.File.Size()
}

// Digest returns the digest that the bytes have, or are to have.
func (s *spooledIndex) Digest() digest.Digest {
	if s.lent != nil {
		return s.lent.digest
	}
	return s.File.Digest()
}
