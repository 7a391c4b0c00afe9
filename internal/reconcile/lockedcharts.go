package reconcile

import (
	"cmp"
	"context"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	godigest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	helmchart "helm.sh/helm/v3/pkg/chart"

	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
)

// storedAsLocked reports whether the artifact in storage is the locked one. It is false if a signature must be verified:
// a signer who was trusted yesterday may not be trusted today.
func (p *chartReconciliation) storedAsLocked(obj *sourcev1.HelmChart, e *lock.Entry) (status.Build, bool) {
	current := p.stored()
	if current == nil || p.rebuild || p.r.o.checksSignatures() && (obj.Spec.Verify != nil || p.r.o.Keyring != nil || p.r.o.RequireVerification) {
		return status.Build{}, false
	}
	build := status.Build{Name: obj.Status.ObservedChartName, Version: current.Revision}
	if e.Package != "" {
		return build, e.Package == current.Digest
	}
	same := e.Digest != "" && e.Digest == current.Digest || e.LayerDigest != "" && e.LayerDigest == current.Digest
	return build, same && current.Revision == p.adm.Object.Veil(e.Version)
}

func entryPin(e *lock.Entry) Pin {
	pin := Pin{Source: PinIndex, Chart: e.Chart, Version: e.Version, URL: e.URL, Digest: e.Digest}
	if e.ManifestDigest != "" {
		pin.Source, pin.Digest, pin.Manifest = PinRegistry, e.LayerDigest, e.ManifestDigest
	}
	return pin
}

type lockedCharts struct {
	r     *Reconciler
	repo  *repository
	entry *lock.Entry
}

func (c *lockedCharts) refused(err error) error { return pullFailure(err) }

func (c *lockedCharts) choose(ctx context.Context, _ *remarks, name, _ string) (*resolvedChart, error) {
	return c.r.lockedChart(ctx, c.repo, name, c.entry)
}

// lockedChart returns a chart at the URL of its entry, without reading the list of published charts.
func (r *Reconciler) lockedChart(ctx context.Context, repo *repository, name string, e *lock.Entry) (*resolvedChart, error) {
	if repo.registry != nil {
		return r.lockedManifest(ctx, repo, name, e)
	}
	published, _ := time.Parse(time.RFC3339, e.Published) // the zero time if it is invalid
	found := (&indexCharts{r: r, repo: repo}).resolved(ctx, name, resolve.Candidate{Name: name, Version: e.Version, URLs: []string{e.URL}, Created: published})
	found.published = e.Digest
	found.lockTo(repo, e.Digest)
	return found, nil
}

// lockedManifest requests a manifest from a registry by its digest, for the annotations of the chart. It skips the request in a run
// that neither stores nor verifies.
func (r *Reconciler) lockedManifest(ctx context.Context, repo *repository, name string, e *lock.Entry) (*resolvedChart, error) {
	registry := &registryCharts{r, repo}
	if r.o.Until == Choose && !r.o.checksSignatures() && e.LayerDigest != "" {
		return registry.resolved(name, &oci.Manifest{
			Ref: e.URL, Tag: strings.ReplaceAll(e.Version, "+", "_"), Digest: digest.Digest(e.ManifestDigest), Layer: ocispec.Descriptor{Digest: digest.Digest(e.LayerDigest)},
		}), nil
	}
	pinned, err := registry.pinDigest(ctx, name, e)
	if err != nil {
		return nil, err
	}
	if e.LayerDigest != "" && pinned.Layer.Digest.String() != e.LayerDigest {
		return nil, moved("the chart in manifest "+e.ManifestDigest, lock.Difference{Field: "layerDigest", Locked: e.LayerDigest, Now: pinned.Layer.Digest.String()})
	}
	return registry.resolved(name, pinned), nil
}

// lockTo sets the digest that the archive must have, regardless of the published digest.
func (c *resolvedChart) lockTo(repo *repository, text string) {
	c.Digest, c.locked = text, true
	scope := c.key.Scope
	scope.Named = false // no server was asked: only the identity that fetched it may read it
	c.key = blob.Key{Location: repo.location, Identity: repo.identity, Digest: digest.Digest(text), Scope: scope}
}

// exactCharts holds charts of which only the version of the entry is selected, with the digest of the entry if it has one.
type exactCharts struct {
	charts
	entry *lock.Entry
}

func (c *exactCharts) choose(ctx context.Context, w *remarks, name, _ string) (*resolvedChart, error) {
	found, err := c.charts.choose(ctx, w, name, c.entry.Version)
	if err != nil || c.entry.Digest == "" {
		return found, err
	}
	if found.Digest != "" && found.Digest != c.entry.Digest {
		return nil, moved("the published chart", lock.Difference{Field: "digest", Locked: c.entry.Digest, Now: found.Digest})
	}
	found.Digest, found.locked, found.key.Digest = c.entry.Digest, true, digest.Digest(c.entry.Digest)
	return found, nil
}

// packagedAsLocked returns an error if the package differs from the locked one.
func (p *chartReconciliation) packagedAsLocked(pending *store.Pending) error {
	e := p.locked
	if e == nil || e.Package == "" {
		return nil
	}
	want, got := digest.Digest(e.Package), pending.Digest()
	if want.Algorithm() != got.Algorithm() {
		var err error
		if got, err = want.Algorithm().FromReader(sectionOf(pending, pending.Size())); err != nil {
			return unsaved(unsavedChart, err)
		}
	}
	if got == want {
		return nil
	}
	return status.ChartPackageError.Wrap(finding.WithHint(
		notLockedBytes("the package of the chart", &digest.MismatchError{Want: want, Got: got}),
		finding.AcceptPackage,
	))
}

func (p *reconciliation) made() *Built {
	if p.result.Built == nil {
		p.result.Built = &Built{}
	}
	return p.result.Built
}

func (p *chartReconciliation) madeWith(files []string, read func(name string) ([]byte, bool)) {
	for _, name := range files {
		f := lock.File{Name: name}
		if data, ok := read(name); ok {
			f.Digest = godigest.FromBytes(data).String()
		}
		p.made().ValuesFiles = append(p.made().ValuesFiles, f)
	}
}

// lockedDependency returns the entry of a requirement, nil if the chart is not locked.
func (p *chartReconciliation) lockedDependency(requirement *helmchart.Dependency) (*lock.Dependency, error) {
	e := cmp.Or(p.locked, p.asked)
	if e == nil {
		return nil, nil
	}
	repository := lockedURL(requirement.Repository)
	if d := e.Dependency(requirement.Name, repository, requirement.Version); d != nil {
		return d, nil
	}
	return nil, (&Judgement{Object: p.adm, Entry: e, Misfits: []Misfit{{
		Difference: lock.Difference{Field: "dependencies." + requirement.Name, Now: repository + " " + requirement.Version},
	}}}).problem()
}
