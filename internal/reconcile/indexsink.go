package reconcile

import (
	"io"

	godigest "github.com/opencontainers/go-digest"

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
