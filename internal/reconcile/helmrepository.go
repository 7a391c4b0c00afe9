package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	godigest "github.com/opencontainers/go-digest"

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
	file *indexFile // fetched in this run, or nil
}

// charts returns the charts of the index that was fetched in this run, else of the stored index. A registry, and a directory that
// replaces one, have no artifact.
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

// perform opens the repository, and takes its index, which has no versions to select from.
func (p *repositoryReconciliation) perform(ctx context.Context) error {
	if p.kind.parts(p.obj).static {
		return status.Failed.Stall(validate.RegistryURL(p.obj))
	}
	repo, err := p.r.open(ctx, p.adm)
	if repo != nil {
		p.Warnings = append(p.Warnings, repo.Warnings...)
	}
	if err != nil {
		return err
	}
	return p.takeIndex(ctx, repo)
}

// index returns the current index of the repository, read once per run.
func (p *repositoryReconciliation) index(ctx context.Context, repo *repository) (*indexFile, error) {
	return p.r.indexes.Do(ctx, repo.identity, func() (*indexFile, error) {
		file, err := p.r.readIndex(ctx, repo, p.knownTag(repo))
		if errors.Is(err, helmrepo.ErrNotModified) {
			return p.unmodifiedIndex(ctx)
		}
		return file, err
	})
}

// takeIndex stores the index, unless the stored index has the same bytes.
func (p *repositoryReconciliation) takeIndex(ctx context.Context, repo *repository) error {
	file, err := p.index(ctx, repo)
	if err != nil {
		return err
	}
	if p.out.Reused, err = p.sameIndex(file); err != nil {
		return storageFailure(err, status.StatOperationFailed)
	}
	if p.choosing() {
		p.compareIndex(file)
		return nil
	}
	if !p.out.Reused {
		if file, err = p.copyIndex(ctx, repo, file); err != nil {
			return err
		}
		p.out.Seen = status.NewIndex(p.status.artifact.Revision)
	}
	p.file = file
	p.fingerprint, p.tag = repo.fingerprint(), file.tag
	p.out.Stored = status.StoredRevision(p.status.artifact.Revision)
	p.out.Announce = status.FetchedIndex(*p.status.artifact.Size, auth.RedactURL(p.obj.Spec.URL))
	return nil
}

// compareIndex reports the status that a controller would set before it stores the index.
func (p *repositoryReconciliation) compareIndex(file *indexFile) {
	p.file = file
	if p.out.Reused {
		p.out.Stored = status.StoredRevision(p.status.artifact.Revision)
	} else {
		p.out.Seen = status.NewIndex(file.digest.String())
	}
}

// knownTag returns the tag of the stored index, or "" if it came from another
// repository or may not be used again.
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

// storedTag replaces the tag of the stored index in an offline run.
const storedTag helmrepo.Tag = "stored"

// unmodifiedIndex returns the stored index, which the server has not changed.
func (p *repositoryReconciliation) unmodifiedIndex(ctx context.Context) (*indexFile, error) {
	file, err := p.r.storedIndexFile(ctx, p.adm, p.stored())
	if err != nil {
		return nil, status.ReadOperationFailed.Wrap(fmt.Errorf("failed to open source artifact: %w", err))
	}
	file.tag = p.tag
	return file, nil
}

// sameIndex reports whether the stored index has the same bytes as the fetched
// index. It compares with the algorithm of the stored digest: a change of
// --artifact-digest-algo alone makes no new artifact.
func (p *repositoryReconciliation) sameIndex(file *indexFile) (bool, error) {
	current := p.stored()
	if current == nil || current.Size == nil || p.r.o.Refresh {
		return false, nil
	}
	stored, err := godigest.Parse(current.Revision)
	if err != nil {
		return false, nil //nolint:nilerr // a revision that is no digest is simply another one
	}
	if stored.Algorithm() == file.digest.Algorithm() {
		return stored == file.digest, nil
	}
	got, err := stored.Algorithm().FromReader(sectionOf(file.file, file.size))
	return got == stored, err
}

// copyIndex stores an index as the artifact of the object. An index that is damaged in the cache is downloaded again; it returns
// the index that it stored.
func (p *repositoryReconciliation) copyIndex(ctx context.Context, repo *repository, file *indexFile) (*indexFile, error) {
	err := p.storing(func(pending *store.Pending) error {
		var from io.Reader = sectionOf(file.file, file.size)
		if file.cached {
			from = digest.NewReader(from, file.digest)
		}
		if err := pending.Take(from, file.digest); err != nil {
			return unsaved(unsavedIndex, err)
		}
		revision := pending.Digest()
		return p.commit(pending, "index-"+revision.Encoded()+".yaml", revision.String(), nil, unsavedIndex)
	})
	if !is[*digest.MismatchError](err) {
		return file, err
	}
	if file, err = p.r.readAgain(ctx, repo, file); err != nil {
		return nil, err
	}
	return p.copyIndex(ctx, repo, file)
}
