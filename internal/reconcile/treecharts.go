package reconcile

import (
	"context"
	"errors"
	"io"
	"path"
	"strconv"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	godigest "github.com/opencontainers/go-digest"
	helmchart "helm.sh/helm/v3/pkg/chart"

	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// errAbsoluteChart is the error of an absolute path, which cannot name a chart in the source.
var errAbsoluteChart = errors.New("local chart reference path cannot be absolute")

func (p *chartReconciliation) takeFromTree(ctx context.Context, obj *sourcev1.HelmChart, result *Result) error {
	if strings.HasPrefix(obj.Spec.Chart, "/") {
		return status.InvalidChartReference.Wrap(errAbsoluteChart)
	}
	p.observeRevision(result)
	from, err := result.tree(ctx)
	if err != nil {
		return err
	}
	if err := p.vouched(result); err != nil {
		return err
	}
	if kept, err := p.treeAsLocked(obj, from); kept || err != nil {
		return err
	}
	fingerprint := p.treeFingerprint(obj, from)
	if p.reusable(fingerprint) && !p.choosing() { // keeping the artifact does not need the files
		build := status.Build{Name: obj.Status.ObservedChartName, Version: p.prev.Artifact.Revision}
		p.choseFromTree(from, build.Version)
		p.unchanged(build)
		return nil
	}
	found, err := p.findInTree(ctx, obj, from)
	switch {
	case err != nil:
		return err
	case p.choosing():
		return p.compareTreeChart(ctx, obj, found)
	case found.recipe == nil:
		return p.copyChart(obj, found.source, found.Found, found.build, fingerprint)
	}
	return p.buildChart(ctx, obj, found.source, found.Found, found.build, found.recipe, fingerprint)
}

// treeAsLocked keeps the package in storage if it is the locked one, and reports only the locked version if the run needs no more.
// It returns an error for a tree of another revision than the locked one.
func (p *chartReconciliation) treeAsLocked(obj *sourcev1.HelmChart, from *sourceTree) (kept bool, err error) {
	e := p.locked
	if e == nil {
		return false, nil
	}
	if from.revision != e.Revision {
		return false, status.NotLocked.Wrap((&Judgement{Object: p.adm, Entry: e, Misfits: []Misfit{{
			Difference: lock.Difference{Field: "revision", Locked: e.Revision, Now: from.revision},
		}}}).problem())
	}
	build, stored := p.storedAsLocked(obj, e)
	switch {
	case stored && e.Package != "":
		p.unchanged(build)
	case p.settled():
		p.out.Seen = status.Build{Name: path.Base(e.Chart), Version: e.Version}.Seen()
	default:
		return false, nil
	}
	p.choseFromTree(from, e.Version)
	return true, nil
}

type treeChart struct {
	*chart.Found
	source chart.Source
	build  status.Build
	recipe *recipe // nil for an archive that is stored unchanged
}

// findInTree finds a chart in a tree, with the recipe for its package.
func (p *chartReconciliation) findInTree(ctx context.Context, obj *sourcev1.HelmChart, from *sourceTree) (*treeChart, error) {
	root, err := from.files(ctx)
	if err != nil {
		return nil, err
	}
	source := chart.Source{Root: root, Filter: from.filter, Limits: p.r.limits}
	found, err := source.Find(obj.Spec.Chart)
	if err != nil {
		return nil, status.InvalidChartReference.Wrap(err)
	}
	p.warnEach(finding.OddSource, found.Warnings)
	if p.operated() != nil && found.Dir {
		if err := p.warnIgnored(ctx, root, found.Path); err != nil {
			return nil, status.InvalidChartReference.Wrap(err)
		}
	}
	if text := validate.UselessValuesFiles(obj); text != "" {
		p.warnAt(finding.UselessSetting, text, "spec", "valuesFiles")
	}
	chosen := &treeChart{Found: found, source: source, build: status.Build{Name: found.Metadata.Name, Version: found.Metadata.Version}}
	if chosen.recipe, err = p.treeRecipe(obj, found, from, &chosen.build); err != nil {
		return nil, err
	}
	p.choseFromTree(from, chosen.build.Version)
	return chosen, nil
}

func (p *chartReconciliation) choseFromTree(from *sourceTree, version string) {
	pin := from.pin
	pin.Chart, pin.Version = p.obj.Spec.Chart, version
	p.pinTo(pin)
	p.result.Resolution.Version = version
}

// compareTreeChart reports the status that a controller would set before it packages the chart.
func (p *chartReconciliation) compareTreeChart(ctx context.Context, obj *sourcev1.HelmChart, found *treeChart) error {
	if p.r.o.VerifyDependencies && found.Dir {
		if err := p.checkDependencies(ctx, found.source, found.Found); err != nil {
			return err
		}
	}
	p.compare(obj, found.build, found.recipe)
	return nil
}

// treeFingerprint returns the fingerprint of a chart that depends only on its source.
func (p *chartReconciliation) treeFingerprint(obj *sourcev1.HelmChart, from *sourceTree) string {
	parts := []any{obj.Spec, p.out.Generation, from.revision, from.digest, entryTime(from.time, p.r.getenv)}
	if hr := p.operated(); hr != nil {
		parts = append(parts, hr.Spec.Chart.SkipDepUpdate)
	}
	return fingerprintOf(parts...)
}

// vouched returns an error if a signature is required and the tree of the chart is not signed.
func (p *chartReconciliation) vouched(source *Result) error {
	git, ok := source.Object.Typed.(*sourcev1.GitRepository)
	if !p.r.o.RequireVerification || ok && git.Spec.Verification != nil {
		return nil
	}
	return status.ChartVerificationError.Wrap(notSigned("its source has no spec.verify"))
}

// treeRecipe returns the recipe for a chart from a tree, nil for an archive
// that is stored unchanged. It sets the version of the build.
func (p *chartReconciliation) treeRecipe(obj *sourcev1.HelmChart, found *chart.Found, from *sourceTree, build *status.Build) (*recipe, error) {
	files := chart.EffectiveValuesFiles(obj.Spec.ValuesFiles)
	metadata := ""
	if obj.Spec.ReconcileStrategy == sourcev1.ReconcileStrategyRevision {
		metadata = shortRevision(obj.Spec.SourceRef.Kind, from.revision)
	}
	if len(files) > 0 {
		if metadata != "" {
			metadata += "."
		}
		metadata += strconv.FormatInt(p.out.Generation, 10)
	}
	if !found.Dir && metadata == "" {
		return nil, nil
	}
	return p.recipe(build, metadata, files, from.time)
}

// shortRevision returns the part of a source's revision that is added to versions.
func shortRevision(kind, revision string) string {
	hash := revision
	if kind != sourcev1.BucketKind {
		hash = revisionHash(revision)
	} else if d, err := godigest.Parse(revision); err == nil {
		hash = d.Encoded()
	}
	return hash[:min(revisionLength, len(hash))]
}

func (p *chartReconciliation) copyChart(obj *sourcev1.HelmChart, source chart.Source, found *chart.Found, build status.Build, fingerprint string) error {
	archive, err := source.Open(found)
	if err != nil {
		return status.ChartPullError.Wrap(err)
	}
	defer archive.Close()
	return p.storing(func(pending *store.Pending) error {
		if _, err := io.Copy(pending, archive); err != nil {
			return unsaved(unsavedChart, err)
		}
		build.Stage = status.Pulled
		return p.keepPackage(obj, pending, build, fingerprint, nil)
	})
}

func (p *chartReconciliation) buildChart(ctx context.Context, obj *sourcev1.HelmChart, source chart.Source, found *chart.Found, build status.Build, recipe *recipe, fingerprint string) error {
	p.saw(obj, build)
	c, err := p.loadChart(obj, source, found, &build, recipe)
	if err != nil {
		return err
	}
	var dependencies []*dependency
	if found.Dir {
		if dependencies, err = p.findDependencies(ctx, c); err != nil {
			return err
		}
	}
	if prints := printsOf(dependencies); prints != nil {
		if fingerprint = fingerprintOf(fingerprint, prints); p.reusable(fingerprint) {
			p.unchanged(build)
			return nil
		}
	}
	if err := p.fetchDependencies(ctx, source, found.Path, c, dependencies); err != nil {
		return err
	}
	return p.packageChart(obj, c, build, recipe.Time, fingerprint, nil)
}

// checkDependencies fetches the dependencies of a chart, which verifies them, and discards them.
func (p *chartReconciliation) checkDependencies(ctx context.Context, source chart.Source, found *chart.Found) error {
	c, err := source.Load(found.Path)
	if err != nil {
		return status.ChartPackageError.Wrap(err)
	}
	dependencies, err := p.findDependencies(ctx, c)
	if err != nil {
		return err
	}
	return p.fetchDependencies(ctx, source, found.Path, c, dependencies)
}

func (p *chartReconciliation) loadChart(obj *sourcev1.HelmChart, source chart.Source, found *chart.Found, build *status.Build, recipe *recipe) (*helmchart.Chart, error) {
	var merged map[string]any
	var used []string
	var err error
	if len(recipe.ValuesFiles) > 0 {
		merged, used, err = source.MergeValues(found.Path, recipe.ValuesFiles, obj.Spec.IgnoreMissingValuesFiles)
		if err != nil {
			return nil, status.ValuesFilesError.Wrap(err)
		}
		p.madeWith(recipe.ValuesFiles, source.ValuesFile)
	}
	c, err := source.Load(found.Path)
	if err != nil {
		return nil, status.ChartPackageError.Wrap(err)
	}
	c.Metadata.Version = recipe.Version
	if len(recipe.ValuesFiles) == 0 {
		return c, nil
	}
	return c, overwriteValues(c, merged, used, build)
}
