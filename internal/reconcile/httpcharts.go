package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/helmrepo"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/index"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/status"
)

type indexCharts struct {
	r    *Reconciler
	repo *repository
	file *indexFile
}

func (c *indexCharts) refused(err error) error {
	if _, ok := errors.AsType[*helmrepo.IndexError](err); ok {
		return status.ChartPullError.Wrap(fmt.Errorf("failed to get chart version for remote reference: %w", err))
	}
	return referenceFailure(err)
}

func (c *indexCharts) choose(ctx context.Context, t *remarks, name, version string) (*resolvedChart, error) {
	candidates, err := c.published(ctx, t, name)
	if err != nil {
		return nil, err
	}
	chosen, err := resolve.ChooseFromIndex(name, candidates, version)
	decideVersion(ctx, candidates, version, chosen.Version)
	if err != nil {
		return nil, err
	}
	if chosen.Deprecated {
		t.warnAs(finding.DeprecatedChart, "chart '%s' version '%s' is deprecated", name, chosen.Version)
	}
	if chosen.Removed {
		t.warnAs(finding.DeprecatedChart, "chart '%s' version '%s' was removed by its publisher", name, chosen.Version)
	}
	return c.resolved(ctx, name, chosen), nil
}

// candidates returns the versions of a chart. If the positions were computed for another index, the
// index is read again, or downloaded again if it was damaged in the cache.
func (c *indexCharts) candidates(ctx context.Context, name string) (*index.Index, []resolve.Candidate, int, error) {
	opened := c.file.open()
	found, dropped, err := opened.Candidates(name)
	if !errors.Is(err, index.ErrAltered) {
		return opened, found, dropped, err
	}
	file, err := c.r.readAgain(ctx, c.repo, c.file)
	if err != nil {
		return opened, nil, 0, err
	}
	c.file, opened = file, file.open()
	found, dropped, err = opened.Candidates(name)
	return opened, found, dropped, err
}

// published returns the versions of a chart. If the index does not have the chart, the error suggests a similar name.
func (c *indexCharts) published(ctx context.Context, w *remarks, name string) ([]resolve.Candidate, error) {
	opened, candidates, dropped, err := c.candidates(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		unknown := &finding.Problem{Code: finding.UnknownChart, Err: err}
		if near, _ := finding.Nearest(name, opened.Charts()); near != "" {
			unknown.Advice = fmt.Sprintf("the index has a chart named %q", near)
		}
		return nil, unknown
	case err != nil:
		return nil, &helmrepo.IndexError{Err: fmt.Errorf("failed to load index: %w", err)}
	}
	if dropped > 0 {
		w.debugf("%d entries of chart '%s' are not valid and were left out", dropped, name)
	}
	return candidates, nil
}

func (c *indexCharts) resolved(ctx context.Context, name string, chosen resolve.Candidate) *resolvedChart {
	_, local := c.repo.indexed.(*helmrepo.Directory)
	found := &resolvedChart{
		repository: c.repo.location,

		Pin:       Pin{Source: PinIndex, Chart: name, Version: chosen.Version, Digest: publishedDigest(chosen.Digest)},
		published: chosen.Digest, deprecated: chosen.Deprecated, local: local, time: chosen.Created,
		entry: []any{c.repo.location, chosen.Name, chosen.Version, chosen.Digest, chosen.URLs, chosen.Created.Format(time.RFC3339Nano)},
		provenance: func(ctx context.Context, dst fetch.Sink) error {
			return c.repo.indexed.Provenance(ctx, chosen, dst)
		},
		file: archiveName(status.Build{Name: name, Version: chosen.Version}),
	}
	if local {
		found.Source = PinDirectory
	}
	found.id = fmt.Sprintf("%q %q", c.repo.identity, found.entry)
	found.key = blob.Key{Location: c.repo.location, Identity: c.repo.identity, Digest: c.digest(chosen, local)}
	found.key.Scope = c.r.elsewhereScope(ctx, c.repo.scope, chosen.URLs)
	found.key.Scope.Item = c.repo.object.Object.ConcealText(name + "-" + chosen.Version)
	found.fetch = func(ctx context.Context, dst fetch.Sink, limit int64) error {
		return c.archive(ctx, chosen, dst, limit)
	}
	if !local {
		found.fetch = c.r.online("the archive of "+found.shown(), found.fetch)
	}
	if found.key.Digest == "" {
		found.key.Location = fmt.Sprintf("%q", found.entry)
	}
	if len(chosen.URLs) > 0 {
		found.URL = auth.RedactURL(c.urlOf(chosen.URLs[0]))
		if strings.HasPrefix(chosen.URLs[0], sourcev1.HelmRepositoryTypeOCI+"://") && !local {
			found.provenance = c.registryProvenance(chosen)
		} else if u, err := url.Parse(chosen.URLs[0]); err == nil {
			found.file = path.Base(u.Path)
		}
	}
	return found
}

// digest returns the digest of the archive if the index publishes one and the policy enforces it.
func (c *indexCharts) digest(chosen resolve.Candidate, local bool) digest.Digest {
	if local || c.r.o.digestPolicy() != fetch.DigestEnforce {
		return ""
	}
	published, err := digest.ParseLoose(chosen.Digest)
	if err != nil {
		return "" // the download warns of it
	}
	return published
}

// archive fetches from the first location that has the archive. A server's URLs
// may lead to a registry, and from there to further servers.
func (c *indexCharts) archive(ctx context.Context, chosen resolve.Candidate, dst fetch.Sink, limit int64) error {
	var failed []error
	for {
		err := c.repo.indexed.Archive(ctx, chosen, dst, limit)
		elsewhere, ok := errors.AsType[*helmrepo.OCIURLError](err)
		if ok {
			failed = append(failed, helmrepo.FailedBefore(err)...)
			ref := elsewhere.Reference()
			chosen.URLs = chosen.URLs[max(slices.Index(chosen.URLs, ref), 0)+1:]
			err = c.r.registryArchive(c.repo, ref, chosen)(ctx, dst, limit)
		}
		if err == nil {
			return nil
		}
		failed = append(failed, err)
		if elsewhere == nil || len(chosen.URLs) == 0 || !helmrepo.TryNextURL(err) || ctx.Err() != nil {
			return helmrepo.JoinPlaces(failed)
		}
	}
}

// registryProvenance fetches the provenance file of an archive whose first
// location is a registry.
func (c *indexCharts) registryProvenance(chosen resolve.Candidate) func(context.Context, fetch.Sink) error {
	return func(ctx context.Context, dst fetch.Sink) error {
		err := c.r.registryProvenance(c.repo, chosen)(ctx, dst)
		if err != nil && helmrepo.TryNextURL(err) && len(chosen.URLs) > 1 {
			further := chosen
			further.URLs = chosen.URLs[1:]
			return c.repo.indexed.Provenance(ctx, further, dst)
		}
		return err
	}
}

// urlOf returns the location of an archive, as an absolute URL if possible.
func (c *indexCharts) urlOf(ref string) string {
	repo, ok := c.repo.object.Typed.(*sourcev1.HelmRepository)
	if !ok {
		return ref
	}
	if absolute, err := helmrepo.ChartURL(repo.Spec.URL, ref); err == nil {
		return absolute
	}
	return ref
}

func referenceFailure(err error) error {
	return status.InvalidChartReference.Wrap(fmt.Errorf("failed to get chart version for remote reference: %w", err))
}

// chartsOf returns the charts of a repository that has no artifact. If it has an index, the first caller reads it, once per run.
func (r *Reconciler) chartsOf(ctx context.Context, repo *repository) (charts, error) {
	if repo.registry != nil {
		return &registryCharts{r, repo}, nil
	}
	file, err := r.sharedIndex(ctx, repo)
	if err != nil {
		return nil, err
	}
	return &indexCharts{r: r, repo: repo, file: file}, nil
}

// rememberedIndex returns the index that an earlier run stored for a
// HelmRepository, or nil.
func (p *chartReconciliation) rememberedIndex(ctx context.Context, repo *repository) *indexFile {
	key := keyOf(repo.object)
	record, err := p.r.store.Recall(key)
	if err != nil {
		return nil
	}
	var status sourcev1.HelmRepositoryStatus
	if json.Unmarshal(record.Status, &status) != nil || status.Artifact == nil {
		return nil
	}
	if p.r.store.Verify(status.Artifact.Path, status.Artifact.Digest) != nil {
		return nil
	}
	file, err := p.r.earlierIndex(ctx, repo.object, status.Artifact)
	if err != nil {
		return nil
	}
	return file
}

// earlierIndex returns the stored index of a HelmRepository, opened once per run.
func (r *Reconciler) earlierIndex(ctx context.Context, object *admission.Admitted, artifact *meta.Artifact) (*indexFile, error) {
	return r.stored.Do(ctx, keyOf(object), func() (*indexFile, error) { return r.storedIndexFile(ctx, object, artifact) })
}
