package reconcile

import (
	"context"
	"fmt"
	"strconv"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	helmchart "helm.sh/helm/v3/pkg/chart"

	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
)

// repositoryRecipe returns the recipe for a chart from a repository, nil if it
// is stored as published. It sets the version of the build.
func (p *chartReconciliation) repositoryRecipe(obj *sourcev1.HelmChart, chosen *resolvedChart, build *status.Build) (*recipe, error) {
	files := chart.EffectiveValuesFiles(obj.Spec.ValuesFiles)
	if len(files) == 0 {
		return nil, nil
	}
	return p.recipe(build, strconv.FormatInt(p.out.Generation, 10), files, chosen.time)
}

// recipe returns the recipe of a build with metadata in its version, which it sets.
func (p *chartReconciliation) recipe(build *status.Build, metadata string, files []string, source time.Time) (*recipe, error) {
	var err error
	if build.Version, err = resolve.SetMetadata(build.Version, metadata); err != nil {
		return nil, status.MetadataPatchError.Wrap(err)
	}
	return &recipe{Version: build.Version, ValuesFiles: files, Time: entryTime(source, p.r.getenv)}, nil
}

// entryTime returns the time for the entries of an archive that is packaged here: that
// of the source, else SOURCE_DATE_EPOCH, else the zero time, for which the packager has
// a default. It is never the time of the run, so that equal input produces equal bytes.
func entryTime(source time.Time, getenv func(string) string) time.Time {
	if !source.IsZero() {
		return source.UTC().Truncate(time.Second)
	}
	if seconds, err := strconv.ParseInt(getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil && seconds >= 0 {
		return time.Unix(seconds, 0).UTC()
	}
	return time.Time{}
}

// repackage stores a chart from a repository with default values that differ
// from the published ones.
func (p *chartReconciliation) repackage(ctx context.Context, obj *sourcev1.HelmChart, chosen *resolvedChart, build status.Build, recipe *recipe, fingerprint string) error {
	c, err := p.downloadChart(ctx, chosen)
	if err != nil {
		return err
	}
	p.saw(obj, build)
	c.Metadata.Version = recipe.Version
	merged, used, err := chart.MergeValues(c, recipe.ValuesFiles, obj.Spec.IgnoreMissingValuesFiles)
	if err != nil {
		return status.ValuesFilesError.Wrap(fmt.Errorf("failed to merge chart values: %w", err))
	}
	p.madeWith(recipe.ValuesFiles, func(name string) ([]byte, bool) { return chart.ValuesFile(c, name) })
	p.made().Published = recipe.Time
	if err := overwriteValues(c, merged, used, &build); err != nil {
		return err
	}
	return p.packageChart(obj, c, build, recipe.Time, fingerprint, chosen.metadata)
}

func (p *chartReconciliation) downloadChart(ctx context.Context, chosen *resolvedChart) (*helmchart.Chart, error) {
	archive, err := p.r.archive(ctx, chosen)
	if err != nil {
		return nil, err
	}
	defer archive.Release()
	c, err := chart.Load(archive.Section(), p.r.limitsOf(chosen))
	if err != nil {
		return nil, status.ChartPackageError.Wrap(fmt.Errorf("failed to load downloaded chart: %w", err))
	}
	return c, status.ChartPullError.Wrap(p.r.checkIdentity(p.remarks, c.Metadata, chosen))
}

// overwriteValues replaces the chart's values with the merged ones. As in
// source-controller, values files that change nothing are not reported.
func overwriteValues(c *helmchart.Chart, merged map[string]any, used []string, build *status.Build) error {
	changed, err := chart.OverwriteValues(c, merged)
	if changed {
		build.ValuesFiles = used
	}
	return status.ValuesFilesError.Wrap(err)
}

func (p *chartReconciliation) packageChart(obj *sourcev1.HelmChart, c *helmchart.Chart, build status.Build, modTime time.Time, fingerprint string, metadata map[string]string) error {
	return p.storing(func(pending *store.Pending) error {
		watched := &fetch.WatchedSink{Sink: pending}
		err := chart.Package(watched, c, modTime, p.r.limits.Named(archiveName(build)))
		switch {
		case watched.Err != nil:
			return unsaved(unsavedChart, watched.Err)
		case err != nil:
			return status.ChartPackageError.Wrap(fmt.Errorf("failed to package chart: %w", err))
		}
		build.Stage = status.Packaged
		return p.keepPackage(obj, pending, build, fingerprint, metadata)
	})
}

// keepPackage stores a package that was built here, or returns an error if another package is locked.
func (p *chartReconciliation) keepPackage(obj *sourcev1.HelmChart, pending *store.Pending, build status.Build, fingerprint string, metadata map[string]string) error {
	p.made().Package = pending.Digest().String()
	if err := p.packagedAsLocked(pending); err != nil {
		return err
	}
	return p.keepChart(obj, pending, build, fingerprint, metadata)
}
