package reconcile

import (
	"context"
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
	owner    store.Key // whose artifact it is, empty for that of no object
	in       string    // the artifacts directory of that
	offsets  *index.Offsets
	revision godigest.Digest
	artifact *meta.Artifact // nil for a downloaded one
	tag      helmrepo.Tag
	file     io.ReaderAt
	size     int64
	cached   bool // file is in the cache: who copies it compares the digest
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
	return &indexFile{owner: keyOf(object), in: r.store.Dir(), offsets: offsets, artifact: artifact, file: file, size: info.Size()}, nil
}

// storedOffsets says where the charts of a stored index are, from what is kept or else from reading it.
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
	return r.indexes.Do(ctx, repo.identity, func() (*indexFile, error) { return r.spoolIndex(ctx, repo, "") })
}

// spoolIndex returns the index in the cache, or downloads one into a temporary file. If it has the tag known, the error is
// [helmrepo.ErrNotModified].
func (r *Reconciler) spoolIndex(ctx context.Context, repo *repository, known helmrepo.Tag) (*indexFile, error) {
	temporary, err := r.newIndexFile()
	if err != nil {
		return nil, status.DirectoryCreationFailed.Wrap(err)
	}
	return r.readIndex(ctx, repo, temporary, known)
}

// rescan reads an index that is to have a digest.
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
