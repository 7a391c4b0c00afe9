package reconcile

import (
	"io"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/index"
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

// cachedPositions is the kind of the answers that say where in an index its charts are. Their name is the index's digest.
const cachedPositions = "positions"

// positionsPart is the part of an index that positions may take at most, of which each takes some maxPosition bytes: else
// they are neither worth reading nor computing.
const (
	positionsPart = 8
	maxPosition   = 160
)

// keepPositions works out, beside what the run does next, where the charts of an index in the cache are.
func (r *Reconciler) keepPositions(repo *repository, d digest.Digest, offsets *index.Offsets) {
	scope := repo.scope
	if r.cache == nil || scope.Source == "" {
		return
	}
	done := make(chan struct{})
	r.files.addFunc(func() error { <-done; return nil })
	go func() {
		defer close(done)
		defer func() { _ = recover() }() // a later run does without
		file, size, ok := r.cache.View(scope, d)
		if !ok {
			return
		}
		defer func() { _ = file.Close() }()
		if int64(offsets.Len()*maxPosition) > size/positionsPart {
			return
		}
		if p, ok := offsets.Positions(file); ok {
			r.cache.KeepAnswer(scope, cachedPositions, d.String(), "", p)
		}
	}()
}

// positions returns where the charts of an index are, if an earlier run has kept that for this identity.
func (r *Reconciler) positions(repo *repository, d digest.Digest, size int64) (*index.Offsets, bool) {
	if repo.scope.Source == "" {
		return nil, false
	}
	var kept index.Positions
	if _, ok := r.cache.Answer(repo.scope, cachedPositions, d.String(), &kept); !ok {
		return nil, false
	}
	return kept.Offsets(size)
}

// lendIndex lends a sink the index in the cache, if it takes that, and if it is known where the charts are.
func (r *Reconciler) lendIndex(repo *repository, d digest.Digest, dst indexSink) (*index.Offsets, bool) {
	if w, ok := dst.(*watchedIndex); ok {
		dst = w.indexSink
	}
	spooled, ok := dst.(*spooledIndex)
	if !ok || d.Algorithm() != spooled.Digest().Algorithm() {
		return nil, false
	}
	file, size, ok := r.cache.View(repo.scope, d)
	if !ok {
		return nil, false
	}
	offsets, ok := r.positions(repo, d, size)
	if !ok || size > r.o.IndexMax {
		_ = file.Close()
		return nil, false
	}
	r.files.add(file)
	spooled.lent = &lentIndex{file, d, size}
	return offsets, true
}
