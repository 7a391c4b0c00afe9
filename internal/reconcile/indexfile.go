package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fluxcd/pkg/apis/meta"
	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch/helmrepo"
	"github.com/helmsrc/helmsrc/internal/index"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
)

// indexFile is an index on disk with what the one pass over it found. It stays
// open for the rest of the run: every chart of the repository reads its part. What downloads or opens
// it makes it; the reconciliation of its owner fills in the artifact before anything else has it.
type indexFile struct {
	owner    store.Key // whose artifact it is
	in       string    // the artifacts directory of that
	offsets  *index.Offsets
	revision godigest.Digest
	artifact *meta.Artifact // nil for a downloadeded one
	tag      helmrepo.Tag
	file     io.ReaderAt
	size     int64
}

func (f *indexFile) open() *index.Index { return index.Open(f.file, f.offsets) }

func (f *indexFile) writeTo(w io.Writer) error {
	_, err := io.Copy(w, sectionOf(f.file, f.size))
	return err
}

func sectionOf(r io.ReaderAt, size int64) *io.SectionReader { return io.NewSectionReader(r, 0, size) }

// An indexRead reads the stored index while it is compared with its digest: the server
// will most likely say that it has no other one.
type indexRead struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when it is over; the rest is valid from then on
	file   *indexFile
	err    error
}

func (r *Reconciler) startIndexRead(ctx context.Context, object *admission.Admitted, artifact *meta.Artifact) *indexRead {
	a := &indexRead{done: make(chan struct{}), err: errors.New("the index cannot be read")}
	ctx, a.cancel = context.WithCancel(ctx)
	go func() {
		defer close(a.done)
		defer func() { _ = recover() }() // the error stays
		a.file, a.err = r.storedIndexFile(ctx, object, artifact)
	}()
	return a
}

func (a *indexRead) stop() {
	if a != nil {
		a.cancel()
		<-a.done
	}
}

type endingReader struct {
	ctx context.Context
	io.Reader
}

func (r endingReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
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
	return &indexFile{owner: keyOf(object), in: r.store.Dir(), offsets: offsets, artifact: artifact, file: file, size: info.Size()}, nil
}

// storedOffsets says where the charts of a stored index are, from what is kept or else from reading it.
func (r *Reconciler) storedOffsets(ctx context.Context, object *admission.Admitted, artifact *meta.Artifact, file *os.File, size int64) (*index.Offsets, error) {
	if repo, err := r.open(ctx, object); err == nil {
		if offsets, ok := r.positions(repo, digest.Digest(artifact.Digest), size); ok {
			return offsets, nil
		}
	}
	offsets, err := index.Scan(endingReader{ctx, file})
	if err == nil {
		err = offsets.Check(file)
	}
	return offsets, err
}

// newIndexFile returns a temporary file that stays until the connections are closed.
func (r *Reconciler) newIndexFile() (*blob.File, error) {
	f, err := r.newFile()
	if err == nil {
		r.files.add(f)
	}
	return f, err
}

// sharedIndex is the index of a repository that is not reconciled for its own sake. It is
// downloaded once per run, and belongs to no artifact.
func (r *Reconciler) sharedIndex(ctx context.Context, repo *repository) (*indexFile, error) {
	return r.indexes.Do(ctx, repo.identity, func() (*indexFile, error) { return r.spoolIndex(ctx, repo, store.Key{}, "") })
}

// spoolIndex downloads an index into a temporary file. If it has the tag known, the error is
// [helmrepo.ErrNotModified].
func (r *Reconciler) spoolIndex(ctx context.Context, repo *repository, owner store.Key, known helmrepo.Tag) (*indexFile, error) {
	temporary, err := r.newIndexFile()
	if err != nil {
		return nil, status.DirectoryCreationFailed.Wrap(err)
	}
	downloaded := &spooledIndex{File: temporary}
	offsets, tag, err := r.downloadIndex(ctx, repo, downloaded, known)
	if err != nil {
		return nil, err
	}
	return &indexFile{owner: owner, in: r.store.Dir(), offsets: offsets, tag: tag, revision: downloaded.Digest(), file: downloaded, size: downloaded.Size()}, nil
}
