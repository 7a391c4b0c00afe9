package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/helmrepo"
	"github.com/helmsrc/helmsrc/internal/index"
	"github.com/helmsrc/helmsrc/internal/status"
)

// keptIndex holds the data that the cache has for an index besides its bytes.
type keptIndex struct {
	Tag helmrepo.Tag `json:"tag,omitempty"`
}

// readIndex returns the index of a repository. If the server sends tags, the cached index is used unless the server has a newer one;
// an offline run does not ask the server. Otherwise the index is downloaded. If the server's index still has the tag known, the
// error is [helmrepo.ErrNotModified]; all other errors have a reason.
func (r *Reconciler) readIndex(ctx context.Context, repo *repository, known helmrepo.Tag) (*indexFile, error) {
	_, server := repo.indexed.(*helmrepo.Repository)
	if server && known != "" && r.o.Offline {
		return nil, helmrepo.ErrNotModified
	}
	if !server || known != "" {
		return r.downloadIndex(ctx, repo, known)
	}
	var kept keptIndex
	d, found := r.cache.Answer(repo.scope, cachedIndex, "", &kept)
	found = found && (kept.Tag != "" || r.o.Offline) && r.cache.Holds(repo.scope, d)
	if found && !r.o.Offline {
		if file, err := r.downloadIndex(ctx, repo, kept.Tag); !errors.Is(err, helmrepo.ErrNotModified) {
			return file, err
		}
	}
	missing := "the index of "
	if found {
		if file := r.indexInCache(repo, d); file != nil {
			file.tag = kept.Tag
			return file, nil
		}
		missing = "an undamaged index of "
	}
	if r.o.Offline {
		return nil, indexFailure(r.missing(missing + repo.location))
	}
	return r.downloadIndex(ctx, repo, "")
}

// sharedIndex returns the index of a repository that is only the source of other objects.
// It is downloaded once per run, and is not stored as an artifact.
func (r *Reconciler) sharedIndex(ctx context.Context, repo *repository) (*indexFile, error) {
	return r.indexes.Do(ctx, repo.identity, func() (*indexFile, error) { return r.readIndex(ctx, repo, "") })
}

// indexInCache opens an index in the cache, and returns nil if it is damaged. If the positions of its charts are known, it reads only
// them: later reads of other parts verify the digest.
func (r *Reconciler) indexInCache(repo *repository, d digest.Digest) *indexFile {
	view, size, ok := r.cache.View(repo.scope, d)
	if !ok {
		return nil
	}
	if size > r.o.IndexMax {
		_ = view.Close()
		return nil
	}
	offsets, ok := r.positions(repo, d, size)
	if !ok {
		var err error
		if offsets, err = rescan(view, size, d); err != nil {
			_ = view.Close()
			r.discardAltered(err)
			return nil
		}
	}
	r.files.add(view)
	if !ok {
		r.meanwhile(func() { r.keepPositions(repo.scope, d, offsets, view, size) })
	}
	return &indexFile{offsets: offsets, digest: d, file: view, size: size, cached: true}
}

// discardAltered removes an entry from the cache if err reports that its bytes do not match its digest.
func (r *Reconciler) discardAltered(err error) {
	if altered, ok := errors.AsType[*digest.MismatchError](err); ok {
		r.cache.Discard(altered.Want)
	}
}

// downloadIndex downloads the index into a temporary file that stays open until the run closes its connections, and caches it. Its
// error has a reason: the server, the index or this machine may have failed.
func (r *Reconciler) downloadIndex(ctx context.Context, repo *repository, known helmrepo.Tag) (*indexFile, error) {
	dst, err := r.newFile()
	if err != nil {
		return nil, status.DirectoryCreationFailed.Wrap(err)
	}
	file, err := r.downloadTo(ctx, dst, repo, known)
	if err != nil {
		_ = dst.Close() // the file is not used
	}
	return file, err
}

func (r *Reconciler) downloadTo(ctx context.Context, dst *blob.File, repo *repository, known helmrepo.Tag) (*indexFile, error) {
	sink := &fetch.WatchedSink{Sink: dst}
	offsets, tag, err := repo.indexed.Index(ctx, sink, r.o.IndexMax, known)
	switch {
	case errors.Is(err, helmrepo.ErrNotModified):
		return nil, err
	case err != nil && sink.Err != nil:
		return nil, unsaved(unsavedIndex, sink.Err)
	case err != nil:
		return nil, indexFailure(err)
	}
	if err := offsets.Check(dst); err != nil {
		return nil, invalidIndex(err)
	}
	r.files.add(dst)
	if r.cache != nil && repo.scope.Source != "" {
		r.meanwhile(func() {
			scope := repo.scope
			scope.Item = "index.yaml"
			r.cache.Keep(scope, dst.Digest(), dst.Size(), dst.Section())
			r.cache.KeepAnswer(repo.scope, cachedIndex, "", dst.Digest(), keptIndex{tag})
		})
		r.meanwhile(func() {
			r.keepPositions(repo.scope, dst.Digest(), offsets, dst, dst.Size())
		})
	}
	return &indexFile{offsets: offsets, tag: tag, digest: dst.Digest(), file: dst, size: dst.Size()}, nil
}

func indexFailure(err error) error {
	if invalid, ok := errors.AsType[*helmrepo.IndexError](err); ok {
		return invalidIndex(invalid.Err)
	}
	err = fmt.Errorf("failed to fetch Helm repository index: failed to cache index to temporary file: %w", err)
	if fetch.AuthFailure(err) {
		return status.AuthenticationFailed.Wrap(err)
	}
	return status.Failed.Wrap(err)
}

func invalidIndex(err error) error {
	return status.IndexationFailed.Wrap(fmt.Errorf("failed to load Helm repository from index YAML: failed to load index: %w", err))
}

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

// readAgain scans an index again, without the cached positions.
func (r *Reconciler) readAgain(ctx context.Context, repo *repository, file *indexFile) (*indexFile, error) {
	return r.indexes.Do(ctx, repo.identity+" again", func() (*indexFile, error) {
		again := *file
		again.cached = false // rescan verifies the digest
		var err error
		if again.offsets, err = rescan(file.file, file.size, file.digest); err == nil {
			return &again, nil
		}
		if file.cached {
			r.discardAltered(err)
		}
		if r.o.Offline {
			return nil, indexFailure(r.missing("the index of " + repo.location))
		}
		return r.downloadIndex(ctx, repo, "")
	})
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

// keepPositions computes and caches the positions of the charts in an index.
func (r *Reconciler) keepPositions(scope cache.Scope, d digest.Digest, offsets *index.Offsets, file io.ReaderAt, size int64) {
	if int64(offsets.Len()*maxPosition) > size/positionsPart {
		return
	}
	if p, ok := offsets.Positions(file); ok {
		r.cache.KeepAnswer(scope, cachedPositions, d.String(), "", p)
	}
}

// meanwhile caches data in the background. The files that are open now stay open until it has ended.
func (r *Reconciler) meanwhile(keep func()) {
	done := make(chan struct{})
	r.files.addFunc(func() error { <-done; return nil })
	go func() {
		defer close(done)
		defer func() { _ = recover() }() // a later run does it again
		keep()
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
