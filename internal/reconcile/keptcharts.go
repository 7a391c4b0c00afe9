package reconcile

import (
	"context"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

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

// recipe holds the settings of a chart that is packaged here. All of them are
// part of the fingerprint.
type recipe struct {
	Version     string // with the metadata that distinguishes it from the published version
	ValuesFiles []string
	Time        time.Time // of the entries of the archive
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

// unchanged reports the stored artifact with the condition of the run that built it.
func (p *chartReconciliation) unchanged(build status.Build) {
	p.out.Reused = true
	p.status.artifact = p.resigned(p.prev.Artifact)
	p.out.Stored = build.Stored()
	if was := apimeta.FindStatusCondition(p.prev.Conditions, sourcev1.ArtifactInStorageCondition); was != nil {
		p.out.Stored = &status.Observation{Reason: status.Reason(was.Reason), Message: was.Message}
	}
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
