package reconcile

import (
	"context"
	"fmt"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
)

func (p *chartReconciliation) perform(ctx context.Context) error {
	obj := p.obj
	p.out.Unverifiable = obj.Spec.Verify == nil
	p.result.Resolution = &Resolution{Chart: obj.Spec.Chart, Constraint: obj.Spec.Version}
	if p.r.o.List && obj.Spec.SourceRef.Kind != sourcev1.HelmRepositoryKind {
		return nil // trees have no list of versions
	}
	if e := p.locked; e != nil && obj.Spec.SourceRef.Kind == sourcev1.HelmRepositoryKind {
		return p.takeLocked(ctx, obj, e)
	}
	result, err := p.chartSource(ctx, obj)
	if err != nil {
		return err
	}
	if _, ok := result.Object.Typed.(*sourcev1.HelmRepository); !ok {
		return p.takeFromTree(ctx, obj, result)
	}
	if p.r.o.List {
		return p.listCharts(ctx, obj, result)
	}
	return p.takeFromRepository(ctx, obj, result)
}

// takeLocked selects the chart of a Helm repository that an entry names. It reads the index only if the entry has no
// URL for the archive.
func (p *chartReconciliation) takeLocked(ctx context.Context, obj *sourcev1.HelmChart, e *lock.Entry) error {
	if build, ok := p.storedAsLocked(obj, e); ok {
		pin := entryPin(e)
		p.pinTo(pin)
		p.result.Resolution.take(pin)
		p.unchanged(build)
		return nil
	}
	source, err := p.findSource(obj)
	if err != nil {
		return err
	}
	if e.URL == "" && e.ManifestDigest == "" {
		result, err := p.sourceResult(ctx, source)
		if err != nil {
			return err
		}
		found, err := p.publishedCharts(ctx, result)
		if err != nil {
			return err
		}
		return p.takeFrom(ctx, obj, &exactCharts{found, e})
	}
	repo, err := p.r.open(ctx, source)
	if err != nil {
		return err
	}
	p.warnWithheldBy(repo)
	p.obj.Status.ObservedSourceArtifactRevision = ""
	return p.takeFrom(ctx, obj, &lockedCharts{p.r, repo, e})
}

// takeFromRepository selects a published chart of a Helm repository, and verifies it.
func (p *chartReconciliation) takeFromRepository(ctx context.Context, obj *sourcev1.HelmChart, result *Result) error {
	source, err := p.publishedCharts(ctx, result)
	if err != nil {
		return err
	}
	if e := p.asked; e != nil {
		source = &exactCharts{source, &lock.Entry{Version: e.Version}}
	}
	return p.takeFrom(ctx, obj, source)
}

// takeFrom selects a version from source, and verifies it.
func (p *chartReconciliation) takeFrom(ctx context.Context, obj *sourcev1.HelmChart, source charts) error {
	if err := resolve.ValidateName(obj.Spec.Chart); err != nil {
		return status.InvalidChartReference.Wrap(err)
	}
	chosen, err := source.choose(ctx, p.remarks, obj.Spec.Chart, obj.Spec.Version)
	if err != nil {
		return source.refused(err)
	}
	p.pinTo(chosen.Pin)
	p.result.Resolution.take(chosen.Pin)
	p.result.Resolution.Digest = chosen.published
	verified, err := p.verifyChart(ctx, obj, chosen)
	if err != nil {
		return err
	}
	build := status.Build{Name: chosen.Chart, Version: chosen.Version}
	recipe, err := p.repositoryRecipe(obj, chosen, &build)
	if err != nil {
		return err
	}
	if verified {
		p.out.Verified = build.Verified()
	}
	fingerprint := fingerprintOf(obj.Spec, chosen.URL, chosen.entry, recipe)
	if p.reusable(fingerprint) && !chosen.local && (recipe != nil || p.holds(chosen.key.Digest)) {
		if recipe == nil {
			p.result.Pin.knows(p.prev.Artifact.Digest)
		}
		p.unchanged(build)
		return nil
	}
	switch {
	case p.choosing():
		p.compare(obj, build, recipe)
		return nil
	case recipe != nil:
		return p.repackage(ctx, obj, chosen, build, recipe, fingerprint)
	}
	return p.pull(ctx, obj, chosen, build, fingerprint)
}

// holds reports whether the stored artifact has the digest that the source publishes with the same algorithm, if
// it publishes one: a record alone is no proof.
func (p *chartReconciliation) holds(published digest.Digest) bool {
	stored, err := digest.Parse(p.prev.Artifact.Digest)
	return published == "" || err == nil && (stored.Algorithm() != published.Algorithm() || stored == published)
}

func (p *chartReconciliation) pull(ctx context.Context, obj *sourcev1.HelmChart, chosen *resolvedChart, build status.Build, fingerprint string) error {
	return p.storing(func(pending *store.Pending) error {
		archive, err := p.r.archive(ctx, chosen)
		if err != nil {
			return err
		}
		defer archive.Release()
		metadata, err := p.r.checkArchive(p.remarks, archive.Section(), chosen)
		if err != nil {
			return status.ChartPullError.Wrap(err)
		}
		p.result.Pin.knows(archive.Digest().String())
		if err := archive.CopyTo(pending); err != nil {
			return unsaved(unsavedChart, err)
		}
		build.Stage = status.Pulled
		p.result.metadata = metadata
		return p.keepChart(obj, pending, build, fingerprint, chosen.metadata)
	})
}

// chartSource finds the source of a chart and returns its result, after
// reconciling it if necessary.
func (p *chartReconciliation) chartSource(ctx context.Context, obj *sourcev1.HelmChart) (*Result, error) {
	ref := obj.Spec.SourceRef
	if !slices.Contains(chartSources(), ref.Kind) {
		return nil, status.UnsupportedSourceKind.Wrap(fmt.Errorf("unsupported source kind '%s', must be one of: %v", ref.Kind, chartSources()))
	}
	adm, err := p.findSource(obj)
	if err != nil {
		return nil, err
	}
	return p.sourceResult(ctx, adm)
}

// findSource returns the source of a chart, without a request to it.
func (p *chartReconciliation) findSource(obj *sourcev1.HelmChart) (*admission.Admitted, error) {
	ref := obj.Spec.SourceRef
	adm, err := p.r.inventory.FindFor(p.adm.Object, ref.Kind, obj.Namespace, ref.Name)
	if err != nil {
		return nil, status.SourceUnavailable.Wrap(&inventory.UnavailableError{Kind: ref.Kind, Name: ref.Name, Err: err})
	}
	return adm, nil
}

func (p *chartReconciliation) sourceResult(ctx context.Context, adm *admission.Admitted) (*Result, error) {
	result := p.r.result(ctx, adm)
	if result.State == Interrupted {
		return nil, context.Cause(ctx)
	}
	return result, nil
}
