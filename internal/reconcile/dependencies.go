package reconcile

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	helmchart "helm.sh/helm/v3/pkg/chart"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/work"
)

// maxDependencies is how many dependencies of one chart are fetched at the same
// time. The transfers to one host have a separate limit.
const maxDependencies = 8

// dependency is a chart that another chart requires and does not contain.
type dependency struct {
	requirement *helmchart.Dependency
	chosen      *resolvedChart // nil for a chart in the source
	archive     *blob.Blob     // of a local repository, whose archives are always read
	notes       remarks        // held back until all are complete: the order of the reports is fixed
	err         error
	chart       *helmchart.Chart
}

// findDependencies resolves, at the same time, the dependencies that a chart
// requires and does not contain, and reports the published ones. It does not
// download archives that an earlier run may have kept.
func (p *chartReconciliation) findDependencies(ctx context.Context, c *helmchart.Chart) ([]*dependency, error) {
	missing, stale, err := p.missingDependencies(c)
	if err != nil {
		return nil, err
	}
	p.warnEach(finding.StaleDependencies, stale)
	list := make([]*dependency, len(missing))
	for i, requirement := range missing {
		list[i] = &dependency{requirement: requirement}
	}
	err = p.eachDependency(ctx, list, func(ctx context.Context, d *dependency) error {
		if chart.IsLocal(d.requirement) {
			return nil
		}
		return remoteFailure(d, p.findRemote(ctx, d))
	})
	if err == nil {
		p.result.Dependencies = pinsOf(list)
		p.warnUnlocked(c, list)
	}
	return list, err
}

// pinsOf returns the pins of the published dependencies. The revision of the source pins those inside the source.
func pinsOf(list []*dependency) []DependencyPin {
	var pins []DependencyPin
	for _, d := range list {
		if d.chosen != nil {
			pins = append(pins, DependencyPin{d.requirement.Name, auth.RedactURL(d.requirement.Repository), d.requirement.Version, d.chosen.Pin})
		}
	}
	return pins
}

// warnUnlocked warns about dependencies of a HelmRelease of Flux 1 whose version differs from the chart's lock file, which the
// operator does not read.
func (p *chartReconciliation) warnUnlocked(c *helmchart.Chart, list []*dependency) {
	if p.operated() == nil {
		return
	}
	for _, d := range list {
		if d.chosen == nil {
			continue
		}
		if locked := chart.Locked(c, d.requirement); locked != "" && locked != d.chosen.Version {
			p.warnAt(finding.StaleDependencies, fmt.Sprintf("the chart gets %s %s, although its lock file has %s: the Helm Operator does not read that file, and Flux 2 does",
				d.requirement.Name, d.chosen.Version, locked))
		}
	}
}

// eachDependency calls do for all dependencies and returns the error of the
// first that failed, in the order of the chart, so that the error of a run does
// not depend on timing.
func (p *chartReconciliation) eachDependency(ctx context.Context, list []*dependency, do func(context.Context, *dependency) error) error {
	ctx = p.sharedProgress(ctx)
	work.Ordered(len(list), maxDependencies, func(i int) {
		d := list[i]
		defer func() { // as for objects: the other dependencies continue
			if p := recover(); p != nil {
				d.err = fmt.Errorf("internal error, please report it: %v", p)
				d.notes.debugf("%s", debug.Stack())
			}
		}()
		d.err = do(d.notes.collectWarnings(ctx), d)
	})
	for _, d := range list {
		p.warnOnce(d.notes.Warnings)
		p.Debug = append(p.Debug, d.notes.Debug...)
		d.notes = remarks{}
	}
	for _, d := range list {
		if d.err != nil {
			return status.DependencyBuildError.Wrap(d.err)
		}
	}
	return nil
}

// sharedProgress reports only the pauses before retries: the byte counts of parallel
// transfers do not make one useful number.
func (p *chartReconciliation) sharedProgress(ctx context.Context) context.Context {
	var mu sync.Mutex
	return fetch.With(ctx, func(progress fetch.Progress) {
		if progress.Wait == 0 {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		p.r.progress.Transferred(p.adm, progress)
	})
}

func remoteFailure(d *dependency, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("failed to add remote dependency '%s': %w", d.requirement.Name, err)
}

func (p *chartReconciliation) findRemote(ctx context.Context, d *dependency) error {
	name, version, url := d.requirement.Name, d.requirement.Version, d.requirement.Repository
	if err := chart.CheckRepository(url); err != nil {
		return err
	}
	repo, err := p.dependencyRepository(ctx, url)
	if err != nil {
		return err
	}
	d.notes.warnWithheldBy(repo)
	locked, err := p.lockedDependency(d.requirement)
	if err != nil {
		return err
	}
	if locked != nil {
		err = p.findLocked(ctx, repo, d, locked)
	} else if found, failed := p.dependencyCharts(ctx, repo); failed != nil {
		err = failed
	} else {
		d.chosen, err = found.choose(ctx, &d.notes, name, version)
	}
	var unpinned *downloadError
	switch {
	case errors.As(err, &unpinned):
		return err
	case err != nil:
		return fmt.Errorf("failed to get chart '%s' version '%s' from '%s': %w", name, version, auth.RedactURL(url), err)
	}
	if d.chosen.local {
		d.archive, err = p.r.acquire(ctx, d.chosen)
	}
	if err == nil && p.r.o.VerifyDependencies {
		err = p.r.verifyDependency(ctx, d)
	}
	return err
}

// findLocked selects the dependency that an entry names, without reading the list of published charts if the entry has a URL.
func (p *chartReconciliation) findLocked(ctx context.Context, repo *repository, d *dependency, locked *lock.Dependency) (err error) {
	if locked.URL == "" || p.asked != nil {
		found, err := p.dependencyCharts(ctx, repo)
		if err != nil {
			return err
		}
		e := &lock.Entry{Version: locked.Version}
		if p.asked == nil {
			e.Digest = locked.Digest
		}
		d.chosen, err = (&exactCharts{found, e}).choose(ctx, &d.notes, d.requirement.Name, "")
		return err
	}
	e := &lock.Entry{Version: locked.Version, URL: locked.URL, Digest: locked.Digest, ManifestDigest: locked.ManifestDigest}
	if e.ManifestDigest != "" {
		e.Digest, e.LayerDigest = "", locked.Digest
	}
	d.chosen, err = p.r.lockedChart(ctx, repo, d.requirement.Name, e)
	return err
}

// verifyDependency verifies the provenance of a dependency.
func (r *Reconciler) verifyDependency(ctx context.Context, d *dependency) error {
	archive, err := r.acquire(ctx, d.chosen)
	if err != nil {
		return err
	}
	if _, err := r.provenance(ctx, d.chosen, archive); err != nil {
		return fmt.Errorf("failed to verify %s: %w", d.chosen.URL, err)
	}
	return nil
}

// dependencyRepository opens the repository of a dependency: the HelmRepository
// with the same URL in the chart's namespace, else the URL without credentials.
func (p *chartReconciliation) dependencyRepository(ctx context.Context, url string) (*repository, error) {
	normal, err := fetch.NormalizeURL(url)
	if err != nil {
		return nil, err
	}
	adm := p.r.inventory.Repository(p.key.Namespace, normal)
	if adm == nil {
		adm = anonymousRepository(normal)
	}
	repo, err := p.r.open(ctx, adm)
	if err != nil {
		return nil, fmt.Errorf("failed to get chart repository for URL '%s': %w", auth.RedactURL(normal), err)
	}
	return repo, nil
}

// dependencyCharts returns the charts of a repository that is not the chart's source.
// If its index cannot be fetched, the index that an earlier run stored is used.
func (p *chartReconciliation) dependencyCharts(ctx context.Context, repo *repository) (charts, error) {
	found, err := p.r.chartsOf(ctx, repo)
	if err != nil {
		if file := p.rememberedIndex(ctx, repo); file != nil {
			return &indexCharts{r: p.r, repo: repo, file: file}, nil
		}
	}
	return found, err
}

// fetchDependencies downloads or loads the charts of the dependencies, at the
// same time, and adds them to the chart in the order of its requirements.
func (p *chartReconciliation) fetchDependencies(ctx context.Context, source chart.Source, chartPath string, c *helmchart.Chart, list []*dependency) error {
	err := p.eachDependency(ctx, list, func(ctx context.Context, d *dependency) (err error) {
		if d.chosen == nil {
			d.chart, err = source.Local(chartPath, d.requirement)
			return err
		}
		if d.chart, err = p.r.remoteChart(ctx, d); err != nil {
			// source-controller does not name the origin of the archive.
			err = finding.WithHint(err, fmt.Sprintf("'%s' comes from the repository %s", d.requirement.Name, auth.RedactURL(d.requirement.Repository)))
		}
		return remoteFailure(d, err)
	})
	if err != nil || len(list) == 0 {
		return err
	}
	p.result.Dependencies = pinsOf(list) // with the digests of the bytes, if no digest was published
	var requirements []*helmchart.Dependency
	var loaded []*helmchart.Chart
	for _, d := range list {
		requirements, loaded = append(requirements, d.requirement), append(loaded, d.chart)
	}
	chart.Vendor(c, requirements, loaded)
	p.out.Events = append(p.out.Events, status.ResolvedDependencies(len(list)))
	return nil
}

func (r *Reconciler) remoteChart(ctx context.Context, d *dependency) (*helmchart.Chart, error) {
	archive, err := r.acquire(ctx, d.chosen)
	if err != nil {
		return nil, err
	}
	d.chosen.knows(archive.Digest().String())
	c, err := chart.Load(archive.Section(), r.limitsOf(d.chosen))
	if err != nil {
		return nil, fmt.Errorf("failed to load downloaded archive of version '%s': %w", d.chosen.Version, err)
	}
	if err := r.checkIdentity(&d.notes, c.Metadata, d.chosen); err != nil {
		return nil, &downloadError{d.chosen.Version, err}
	}
	return c, nil
}

type dependencyPrint struct {
	Requirement *helmchart.Dependency
	Entry       any
	Archive     string
}

// printsOf returns the fingerprints of the published dependencies. Those inside
// the source are part of the source's own digest.
func printsOf(list []*dependency) []dependencyPrint {
	var prints []dependencyPrint
	for _, d := range list {
		if d.chosen == nil {
			continue
		}
		p := dependencyPrint{Requirement: d.requirement, Entry: d.chosen.entry}
		if d.archive != nil {
			p.Archive = d.archive.Digest().String()
		}
		prints = append(prints, p)
	}
	return prints
}

// anonymousTimeout is the timeout for a repository that no object describes, as
// in source-controller.
const anonymousTimeout = time.Minute

// anonymousRepository returns a HelmRepository for a URL that no object
// describes. Its name is the URL, which no object in a cluster can have.
func anonymousRepository(normal string) *admission.Admitted {
	repo := &sourcev1.HelmRepository{Spec: sourcev1.HelmRepositorySpec{
		URL:      normal,
		Type:     sourcev1.HelmRepositoryTypeDefault,
		Provider: sourcev1.GenericOCIProvider,
		Timeout:  &metav1.Duration{Duration: anonymousTimeout},
	}}
	if inventory.IsRegistryURL(normal) {
		repo.Spec.Type = sourcev1.HelmRepositoryTypeOCI
	}
	return &admission.Admitted{Object: &manifest.Object{Kind: sourcev1.HelmRepositoryKind, Name: normal}, Typed: repo}
}
