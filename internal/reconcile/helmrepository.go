package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	godigest "github.com/opencontainers/go-digest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch/helmrepo"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/validate"
)

type repositoryReconciliation struct {
	*reconciliation
	obj  *sourcev1.HelmRepository
	file *indexFile // that was fetched, or nil
}

// charts are those of the index that was fetched in this run, else of the stored one. A registry, and the directory in its place,
// have no artifact.
func (p *repositoryReconciliation) charts(ctx context.Context, w *remarks) (charts, error) {
	file := p.file
	static := p.kind.parts(p.obj).static
	if file == nil && !static {
		artifact := p.result.Artifact()
		if artifact == nil || p.r.store.Verify(artifact.Path, artifact.Digest) != nil {
			return nil, p.result.nothing()
		}
		var err error
		if file, err = p.r.earlierIndex(ctx, p.adm, artifact); err != nil {
			return nil, status.ReadOperationFailed.Wrap(fmt.Errorf("failed to open source artifact: %w", err))
		}
	}
	repo, err := p.r.open(ctx, p.adm)
	if err != nil {
		return nil, err
	}
	if static {
		w.warnWithheldBy(repo)
		return p.r.chartsOf(ctx, repo)
	}
	return &indexCharts{r: p.r, repo: repo, file: file}, nil
}

// choose opens the repository: of an index there is nothing to choose.
func (p *repositoryReconciliation) choose(ctx context.Context) (*remainder, error) {
	if p.kind.parts(p.obj).static {
		return nil, status.Failed.Stall(validate.RegistryURL(p.obj))
	}
	repo, err := p.r.open(ctx, p.adm)
	if repo != nil {
		p.Warnings = append(p.Warnings, repo.Warnings...)
	}
	if err != nil {
		return nil, err
	}
	return &remainder{
		compare: func(ctx context.Context) error { return p.compareIndex(ctx, repo) },
		fetch:   func(ctx context.Context) error { return p.takeIndex(ctx, repo) },
	}, nil
}

func (p *repositoryReconciliation) takeIndex(ctx context.Context, repo *repository) error {
	file, err := p.r.indexes.Do(ctx, repo.identity, func() (*indexFile, error) { return p.fetchIndex(ctx, repo) })
	if err != nil {
		return err
	}
	if file.owner != p.key || file.in != p.r.store.Dir() {
		if file, err = p.copyIndex(ctx, repo, file); err != nil {
			return err
		}
	}
	p.file = file
	p.fingerprint, p.tag = repo.fingerprint(), file.tag
	p.storedIndex(p.obj, file)
	return nil
}

// fetchIndex downloads the index beside its future place, and puts it there
// unless it is there already. One in the cache stays where it is.
func (p *repositoryReconciliation) fetchIndex(ctx context.Context, repo *repository) (*indexFile, error) {
	pending, err := p.r.store.Create(p.key)
	if err != nil {
		return nil, storageFailure(err, status.ArchiveOperationFailed)
	}
	defer p.discard(pending)
	file, err := p.r.readIndex(ctx, repo, pending, p.knownTag(repo))
	switch {
	case errors.Is(err, helmrepo.ErrNotModified):
		return p.unmodifiedIndex(ctx)
	case err != nil || file.cached:
		return file, err
	}
	file.owner = p.key
	return file, p.keepIndex(pending, file)
}

// knownTag is the tag of the stored index, if it came from this repository and may be
// used again.
func (p *repositoryReconciliation) knownTag(repo *repository) helmrepo.Tag {
	stored := p.stored()
	if p.rebuild || stored == nil || stored.Size == nil || *stored.Size > p.r.o.IndexMax || p.fingerprint != repo.fingerprint() {
		return ""
	}
	if _, err := godigest.Parse(stored.Revision); err != nil {
		return "" // the record has been edited
	}
	if p.r.o.Offline {
		return storedTag
	}
	return p.tag
}

// storedTag stands for whatever tag the stored index has, in a run that asks no server.
const storedTag helmrepo.Tag = "stored"

// unmodifiedIndex is the stored index, which the server has not changed.
func (p *repositoryReconciliation) unmodifiedIndex(ctx context.Context) (*indexFile, error) {
	file, err := p.r.storedIndexFile(ctx, p.adm, p.stored())
	if err != nil {
		return nil, status.ReadOperationFailed.Wrap(fmt.Errorf("failed to open source artifact: %w", err))
	}
	file.revision, file.tag = godigest.Digest(p.stored().Revision), p.tag
	return file, nil
}

// keepIndex commits a downloaded index, or goes on with the stored one if that has the same bytes.
func (p *repositoryReconciliation) keepIndex(pending *store.Pending, file *indexFile) error {
	current, err := p.upToDate(pending)
	if err != nil {
		return storageFailure(err, status.StatOperationFailed)
	}
	if current {
		file.artifact = p.prev.Artifact
		return p.openIndex(file)
	}
	if err := p.commit(pending, "index-"+file.revision.Encoded()+".yaml", file.revision.String(), nil, "unable to save artifact to storage"); err != nil {
		return err
	}
	file.artifact = p.status.artifact
	return p.openIndex(file)
}

// upToDate reports whether the stored index has the same bytes as the fetched one.
// It compares by the stored algorithm: another --artifact-digest-algo alone
// makes no new artifact.
func (p *repositoryReconciliation) upToDate(pending *store.Pending) (bool, error) {
	if p.prev.Artifact == nil || p.prev.Disappeared || p.r.o.Refresh {
		return false, nil
	}
	stored, err := godigest.Parse(p.prev.Artifact.Revision)
	if err != nil {
		return false, nil //nolint:nilerr // a revision that is no digest is simply another one
	}
	if stored.Algorithm() == pending.Digest().Algorithm() {
		return stored == pending.Digest(), nil
	}
	got, err := stored.Algorithm().FromReader(sectionOf(pending, pending.Size()))
	return got == stored, err
}

// copyIndex stores an index that was fetched for another object with the same
// repository, or is in the cache. One that is damaged there is downloaded again.
func (p *repositoryReconciliation) copyIndex(ctx context.Context, repo *repository, from *indexFile) (*indexFile, error) {
	pending, err := p.r.store.Create(p.key)
	if err != nil {
		return nil, storageFailure(err, status.ArchiveOperationFailed)
	}
	defer p.discard(pending)
	_, err = io.Copy(pending, digest.NewReader(sectionOf(from.file, from.size), from.revision))
	switch altered := is[*digest.MismatchError](err); {
	case altered && from.cached:
		if from, err = p.r.readAgain(ctx, repo, from); err != nil {
			return nil, err
		}
		return p.copyIndex(ctx, repo, from)
	case altered:
		return nil, status.ReadOperationFailed.Wrap(err)
	case err != nil:
		return nil, status.ArchiveOperationFailed.Wrap(err)
	}
	file := &indexFile{owner: p.key, in: p.r.store.Dir(), offsets: from.offsets, tag: from.tag, revision: pending.Digest()}
	return file, p.keepIndex(pending, file)
}

func (p *repositoryReconciliation) storedIndex(obj *sourcev1.HelmRepository, file *indexFile) {
	revision := file.artifact.Revision
	p.out.Reused = file.artifact == p.prev.Artifact
	if !p.out.Reused {
		p.out.Seen = status.NewIndex(revision)
	}
	p.out.Stored = status.StoredRevision(revision)
	p.out.Announce = status.FetchedIndex(*file.artifact.Size, auth.RedactURL(obj.Spec.URL))
	p.status.artifact = file.artifact
}

// compareIndex reports what a controller would see before it stores the index.
func (p *repositoryReconciliation) compareIndex(ctx context.Context, repo *repository) error {
	file, err := p.r.indexes.Do(ctx, repo.identity, func() (*indexFile, error) {
		file, err := p.r.spoolIndex(ctx, repo, p.knownTag(repo))
		if errors.Is(err, helmrepo.ErrNotModified) {
			return p.unmodifiedIndex(ctx)
		}
		return file, err
	})
	if err != nil {
		return err
	}
	p.file = file
	revision := file.revision.String()
	if p.prev.Artifact != nil && !p.prev.Disappeared && p.prev.Artifact.Revision == revision {
		p.out.Stored, p.out.Reused = status.StoredRevision(revision), true
		p.status.artifact = p.prev.Artifact
		return nil
	}
	p.out.Seen = status.NewIndex(revision)
	return nil
}

// commit makes what was written the artifact of the object.
func (p *reconciliation) commit(pending *store.Pending, name, revision string, metadata map[string]string, failed string) error {
	stored, err := pending.Commit(name, p.kind.link)
	if err := p.tolerateLink(err); err != nil {
		return storageFailure(fmt.Errorf("%s: %w", failed, err), status.ArchiveOperationFailed)
	}
	p.status.artifact = &meta.Artifact{
		Path:           stored.Path,
		Revision:       revision,
		Digest:         stored.Digest,
		LastUpdateTime: metav1.NewTime(stored.LastUpdateTime.UTC().Truncate(time.Second)),
		Size:           &stored.Size,
		Metadata:       metadata,
	}
	return nil
}

// openIndex opens the stored bytes.
func (p *repositoryReconciliation) openIndex(f *indexFile) error {
	file, err := p.r.store.OpenArtifact(f.artifact.Path)
	if err != nil {
		return status.ReadOperationFailed.Wrap(fmt.Errorf("failed to open source artifact: %w", err))
	}
	p.r.files.add(file)
	info, err := file.Stat()
	if err != nil {
		return status.ReadOperationFailed.Wrap(fmt.Errorf("failed to open source artifact: %w", err))
	}
	f.file, f.size = file, info.Size()
	return nil
}
