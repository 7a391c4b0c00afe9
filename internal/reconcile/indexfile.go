package reconcile

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch/helmrepo"
	"github.com/helmsrc/helmsrc/internal/index"
)

// indexFile is an index on disk and the positions from the one scan of it. It stays open for the
// rest of the run: each chart of the repository reads its part. It does not change.
type indexFile struct {
	offsets *index.Offsets
	digest  digest.Digest // of the bytes
	tag     helmrepo.Tag
	file    io.ReaderAt
	size    int64
	cached  bool // file is in the cache: a copy must be compared with the digest
}

func (f *indexFile) open() *index.Index { return index.Open(f.file, f.offsets) }

func sectionOf(r io.ReaderAt, size int64) *io.SectionReader { return io.NewSectionReader(r, 0, size) }

func (r *Reconciler) storedIndexFile(ctx context.Context, object *admission.Admitted, artifact *meta.Artifact) (*indexFile, error) {
	file, err := r.store.OpenArtifact(artifact.Path)
	if err != nil {
		return nil, err
	}
	r.files.add(file)
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	offsets, err := r.storedOffsets(ctx, object, artifact, file, info.Size())
	if err != nil {
		return nil, fmt.Errorf("failed to load index: %w", err)
	}
	return &indexFile{offsets: offsets, digest: digest.Digest(artifact.Digest), file: file, size: info.Size()}, nil
}

// storedOffsets returns the positions of the charts in a stored index, from the cache or by reading the index.
func (r *Reconciler) storedOffsets(ctx context.Context, object *admission.Admitted, artifact *meta.Artifact, file *os.File, size int64) (*index.Offsets, error) {
	if repo, err := r.open(ctx, object); err == nil {
		if offsets, ok := r.positions(repo, digest.Digest(artifact.Digest), size); ok {
			return offsets, nil
		}
	}
	offsets, err := index.Scan(file)
	if err == nil {
		err = offsets.Check(file)
	}
	return offsets, err
}

// sharedIndex returns the index of a repository that is only the source of other objects.
// It is downloaded once per run, and is not stored as an artifact.
func (r *Reconciler) sharedIndex(ctx context.Context, repo *repository) (*indexFile, error) {
	return r.indexes.Do(ctx, repo.identity, func() (*indexFile, error) { return r.readIndex(ctx, repo, "") })
}

// rescan scans an index and verifies its digest.
func rescan(r io.ReaderAt, size int64, want digest.Digest) (*index.Offsets, error) {
	in := digest.NewReader(sectionOf(r, size), want)
	offsets, err := index.Scan(in)
	if err == nil {
		err = offsets.Check(r)
	}
	if _, failed := io.Copy(io.Discard, in); failed != nil {
		err = failed
	}
	return offsets, err
}

// cachedPositions is the kind of the answers that hold the positions of the charts in an index. They are named by its digest.
const cachedPositions = "positions"

// positionsPart and maxPosition limit the positions to an eighth of the index, at about maxPosition bytes each: beyond
// that they are not worth computing or reading.
const (
	positionsPart = 8
	maxPosition   = 160
)

// keepPositions computes and caches the positions of the charts in a cached index, in the background.
func (r *Reconciler) keepPositions(repo *repository, d digest.Digest, offsets *index.Offsets) {
	scope := repo.scope
	if r.cache == nil || scope.Source == "" {
		return
	}
	done := make(chan struct{})
	r.files.addFunc(func() error { <-done; return nil })
	go func() {
		defer close(done)
		defer func() { _ = recover() }() // a later run computes them
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

// positions returns the positions of the charts in an index, if an earlier run cached them for this identity.
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
