package reconcile

import (
	"context"
	"fmt"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
)

type chartReconciliation struct {
	*reconciliation
	obj *sourcev1.HelmChart
}

func (p *chartReconciliation) publishedCharts(ctx context.Context, source *Result) (charts, error) {
	p.observeRevision(source)
	return source.charts(ctx, p.remarks)
}

func (p *chartReconciliation) observeRevision(source *Result) {
	if artifact := source.Artifact(); artifact != nil {
		p.obj.Status.ObservedSourceArtifactRevision = source.Object.Object.Veil(artifact.Revision)
	}
}

func (p *chartReconciliation) choose(ctx context.Context) (*remainder, error) {
	obj := p.obj
	p.out.Unverifiable = obj.Spec.Verify == nil
	p.result.Resolution = &Resolution{Chart: obj.Spec.Chart, Constraint: obj.Spec.Version}
	if p.r.o.List && obj.Spec.SourceRef.Kind != sourcev1.HelmRepositoryKind {
		return nil, nil // trees have no list of versions
	}
	if e := p.locked; e != nil && obj.Spec.SourceRef.Kind == sourcev1.HelmRepositoryKind {
		return p.chooseLocked(ctx, obj, e)
	}
	result, err := p.chartSource(ctx, obj)
	if err != nil {
		return nil, err
	}
	if _, ok := result.Object.Typed.(*sourcev1.HelmRepository); !ok {
		return p.chooseFromTree(ctx, obj, result)
	}
	if p.r.o.List {
		return nil, p.listCharts(ctx, obj, result)
	}
	return p.chooseFromRepository(ctx, obj, result)
}

// chooseFromRepository selects a published chart of a Helm repository, and verifies it.
func (p *chartReconciliation) chooseFromRepository(ctx context.Context, obj *sourcev1.HelmChart, result *Result) (*remainder, error) {
	source, err := p.publishedCharts(ctx, result)
	if err != nil {
		return nil, err
	}
	if e := p.asked; e != nil {
		source = &exactCharts{source, &lock.Entry{Version: e.Version}}
	}
	return p.chooseFrom(ctx, obj, source)
}

// chooseFrom selects a version from source, and verifies it.
func (p *chartReconciliation) chooseFrom(ctx context.Context, obj *sourcev1.HelmChart, source charts) (*remainder, error) {
	if err := resolve.ValidateName(obj.Spec.Chart); err != nil {
		return nil, status.InvalidChartReference.Wrap(err)
	}
	chosen, err := source.choose(ctx, p.remarks, obj.Spec.Chart, obj.Spec.Version)
	if err != nil {
		return nil, source.refused(err)
	}
	p.pinTo(chosen.Pin)
	p.result.Resolution.take(chosen.Pin)
	p.result.Resolution.Digest = chosen.published
	verified, err := p.verifyChart(ctx, obj, chosen)
	if err != nil {
		return nil, err
	}
	build := status.Build{Name: chosen.Chart, Version: chosen.Version}
	recipe, err := p.repositoryRecipe(obj, chosen, &build)
	if err != nil {
		return nil, err
	}
	if verified {
		p.out.Verified = build.Verified()
	}
	fingerprint, err := fingerprintOf(obj.Spec, chosen.URL, chosen.entry, recipe)
	if err != nil {
		return nil, err
	}
	if p.reusable(fingerprint) && !chosen.local && (recipe != nil || p.holds(chosen.key.Digest)) {
		if recipe == nil {
			p.result.Pin.knows(p.prev.Artifact.Digest)
		}
		p.unchanged(build)
		return nil, nil
	}
	return &remainder{
		compare: func(context.Context) error {
			p.compare(obj, build, recipe)
			return nil
		},
		fetch: func(ctx context.Context) error {
			if recipe != nil {
				return p.repackage(ctx, obj, chosen, build, recipe, fingerprint)
			}
			return p.pull(ctx, obj, chosen, build, fingerprint)
		},
	}, nil
}

// holds reports whether the stored artifact has the digest that the source publishes with the same algorithm, if
// it publishes one: a record alone is no proof.
func (p *chartReconciliation) holds(published digest.Digest) bool {
	stored, err := digest.Parse(p.prev.Artifact.Digest)
	return published == "" || err == nil && (stored.Algorithm() != published.Algorithm() || stored == published)
}

// unchanged reports the stored artifact with the condition of the run that built it.
func (p *chartReconciliation) unchanged(build status.Build) {
	p.out.Reused = true
	p.status.artifact = p.resigned(p.prev.Artifact)
	p.out.Stored = build.Stored()
	if was := apimeta.FindStatusCondition(p.prev.Conditions, sourcev1.ArtifactInStorageCondition); was != nil {
		p.out.Stored = &status.Observation{Reason: status.Reason(was.Reason), Message: was.Message}
	}
}

func (p *chartReconciliation) reuse(obj *sourcev1.HelmChart, build status.Build) {
	p.out.Reused = true
	p.status.artifact = p.resigned(p.prev.Artifact)
	p.complete(obj, build)
}

// complete records the artifact that is now in storage as the result.
func (p *chartReconciliation) complete(obj *sourcev1.HelmChart, build status.Build) {
	if build.Stage == status.New {
		build.Stage = status.Pulled
	}
	obj.Status.ObservedChartName = build.Name
	obj.Status.ObservedValuesFiles = nil
	if obj.Spec.IgnoreMissingValuesFiles {
		obj.Status.ObservedValuesFiles = build.ValuesFiles
	}
	p.out.Stored = build.Stored()
}

// compare reports the status that a controller would set before it fetches the chart.
func (p *chartReconciliation) compare(obj *sourcev1.HelmChart, build status.Build, recipe *recipe) {
	p.saw(obj, build)
	if p.out.Seen != nil {
		return
	}
	if recipe != nil {
		build.Stage, build.ValuesFiles = status.Packaged, recipe.ValuesFiles
	}
	p.reuse(obj, build)
}

func (p *chartReconciliation) saw(obj *sourcev1.HelmChart, build status.Build) {
	current := p.stored()
	if current == nil || !p.isVeiled(current.Revision, build.Version) || !p.isVeiled(obj.Status.ObservedChartName, build.Name) {
		seen := build
		seen.Stage = status.New
		p.out.Seen = seen.Seen()
	}
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

// keepChart stores the built archive, unless storage already holds it.
func (p *chartReconciliation) keepChart(obj *sourcev1.HelmChart, pending *store.Pending, build status.Build, fingerprint string, metadata map[string]string) error {
	p.saw(obj, build)
	if p.isStored(pending, build.Version) && p.isVeiled(obj.Status.ObservedChartName, build.Name) {
		p.fingerprint = fingerprint
		p.reuse(obj, build)
		p.status.artifact.Metadata = metadata // the same bytes may have been published again
		return nil
	}
	if err := p.commit(pending, p.archiveFile(build), build.Version, metadata, unsavedChart); err != nil {
		return err
	}
	p.fingerprint = fingerprint
	p.complete(obj, build)
	return nil
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

func (p *chartReconciliation) sourceResult(ctx context.Context, adm *admission.Admitted) (*Result, error) {
	result := p.r.result(ctx, adm)
	if result.State == Interrupted {
		return nil, context.Cause(ctx)
	}
	return result, nil
}
