package reconcile

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	helmchart "helm.sh/helm/v3/pkg/chart"

	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// Planned is the chart that a release would install, as far as a run could determine it.
type Planned struct {
	// Version is the version as helm-controller writes it.
	Name, Version string
	// Digest is the digest of the archive, or of the manifest in a registry. It is "" for a chart that was packaged here.
	Digest string
	// Moving is true if the version contains the digest.
	Moving bool
	// Artifact is the path of the chart in the store, "" if it was not fetched. Stored is its digest.
	Artifact, Stored string
	// Revision is status.lastAttemptedRevision. Tree is the path of the stored tree that contains a chart from Git. Both are
	// set for HelmReleases of Flux 1 only.
	Revision, Tree string
}

// PlannedChart returns the chart that a HelmRelease would install, or nil if nothing is known. The results are those of
// the run, including the release's source.
func PlannedChart(release *Result, results []*Result) *Planned {
	source := sourceAmong(release, results)
	if source == nil || release.Failure != nil {
		return nil
	}
	moving := source.Object.Object.Kind != sourcev1.HelmChartKind
	p := &Planned{Name: release.notes[status.ChartAnnotation], Version: release.notes[status.VersionAnnotation], Moving: moving}
	p.noteOperated(release, source, results)
	if p.Name != "" && source.Artifact() != nil {
		p.Artifact, p.Stored = source.Artifact().Path, source.Artifact().Digest
		p.Digest = p.Stored
		if source.Resolution != nil && source.Resolution.Digest != "" {
			p.Digest = withAlgorithm(source.Resolution.Digest)
		}
		if moving {
			p.Digest = manifest.At[string](release.Status, "lastAttemptedRevisionDigest")
		}
		return p
	}
	found := release.Resolution
	if found == nil || found.Version == "" {
		return nil
	}
	p.Name, p.Version, p.Digest = path.Base(found.Chart), found.Version, withAlgorithm(found.Digest)
	if moving {
		p.Version = resolvedVersion(found)
	}
	return p
}

// withAlgorithm adds the algorithm to a digest of an index, which may lack it.
func withAlgorithm(digest string) string {
	if digest == "" || strings.Contains(digest, ":") {
		return digest
	}
	return "sha256:" + digest
}

// resolvedVersion returns the version that a release gets from an artifact that was not read. The tag of a chart
// is its version, unless that is invalid.
func resolvedVersion(found *Resolution) string {
	version := strings.ReplaceAll(found.Version, "_", "+")
	if mutated, _, err := versionOfRevision(version, found.Version+"@"+found.Digest); err == nil {
		return mutated
	}
	return found.Version + "@" + found.Digest
}

func sourceAmong(release *Result, results []*Result) *Result {
	kind, namespace, name, ok := Kinds().SourceRef(release.Object)
	if !ok {
		return nil
	}
	for _, r := range results {
		if obj := r.Object.Object; obj.Kind == kind && obj.Namespace == namespace && obj.Name == name {
			return r
		}
	}
	return nil
}

// RecordedChart returns the chart that an earlier run recorded for a HelmRelease. The results are all recorded results.
func RecordedChart(release *Result, results []*Result) *Planned {
	annotations := manifest.At[map[string]any](release.Object.Content, "metadata", "annotations")
	p := &Planned{
		Name:     manifest.At[string](annotations, status.ChartAnnotation),
		Version:  manifest.At[string](release.Status, "lastAttemptedRevision"),
		Artifact: manifest.At[string](annotations, status.ArtifactAnnotation),
		Digest:   manifest.At[string](release.Status, "lastAttemptedRevisionDigest"),
	}
	p.Moving = p.Digest != ""
	if inventory.IsOperated(release.Object.Object) {
		p.Version = manifest.At[string](annotations, status.VersionAnnotation)
		p.noteOperated(release, chartOfArtifact(results, p.Artifact), results)
	}
	if p.Name == "" || p.Version == "" {
		return nil
	}
	for _, r := range results {
		if !p.Moving && r.Artifact() != nil && r.Artifact().Path == p.Artifact {
			p.Digest, p.Stored = r.Artifact().Digest, r.Artifact().Digest
		}
	}
	return p
}

// noteOperated records the revision of a release of Flux 1, and the stored tree from which its chart was packaged.
func (p *Planned) noteOperated(release, chart *Result, results []*Result) {
	if chart == nil || !inventory.IsOperated(release.Object.Object) {
		return
	}
	p.Revision = manifest.At[string](release.Status, "lastAttemptedRevision")
	ref := manifest.At[map[string]any](chart.Object.Content, "spec", "sourceRef")
	for _, r := range results {
		obj := r.Object.Object
		if obj.Kind == ref["kind"] && obj.Namespace == chart.Object.Object.Namespace && obj.Name == ref["name"] && r.Artifact() != nil {
			p.Tree = r.Artifact().Path
		}
	}
}

// chartOfArtifact returns the HelmChart with an artifact, or nil.
func chartOfArtifact(results []*Result, artifact string) *Result {
	for _, r := range results {
		if r.Object.Object.Kind == sourcev1.HelmChartKind && r.Artifact() != nil && r.Artifact().Path == artifact {
			return r
		}
	}
	return nil
}

// TreeFiles returns the digests of the files below a directory of a stored tree, by their names in the directory.
func TreeFiles(ctx context.Context, st *store.Store, artifact, dir string) (map[string]string, error) {
	file, err := st.OpenArtifact(artifact)
	if err != nil {
		return nil, fmt.Errorf("artifact %s: %w", artifact, err)
	}
	defer file.Close()
	sums, err := tree.Sums(ctx, file, path.Clean(strings.TrimLeft(dir, "/")), tree.Limits{})
	if err != nil {
		return nil, fmt.Errorf("artifact %s: %w", artifact, err)
	}
	return sums, nil
}

// MadeOf returns a fingerprint of a HelmChart's spec if it adds a suffix to the version, as for a chart that is packaged
// with values files. It is "" for a chart that is stored as published.
func MadeOf(spec map[string]any) string {
	var names []string
	for _, f := range manifest.At[[]any](spec, "valuesFiles") {
		names = append(names, manifest.At[string](f))
	}
	if len(chart.EffectiveValuesFiles(names)) == 0 {
		return ""
	}
	return fingerprintOf(spec)
}

// LoadChart loads a chart from the store.
func LoadChart(st *store.Store, artifact string) (*helmchart.Chart, error) {
	file, err := st.OpenArtifact(artifact)
	if err != nil {
		return nil, fmt.Errorf("artifact %s: %w", artifact, err)
	}
	defer file.Close()
	c, err := chart.Load(file, chart.Limits{Name: path.Base(artifact)})
	if err != nil {
		return nil, fmt.Errorf("artifact %s: %w", artifact, err)
	}
	return c, nil
}

// ChartFiles returns the files of a chart in the store and of its subcharts.
func ChartFiles(st *store.Store, artifact string) (map[string][]byte, error) {
	c, err := LoadChart(st, artifact)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	addFiles(files, "", c)
	return files, nil
}

func addFiles(files map[string][]byte, dir string, c *helmchart.Chart) {
	for _, f := range c.Raw {
		files[path.Join(dir, f.Name)] = f.Data
	}
	for _, sub := range c.Dependencies() {
		at := path.Join(dir, "charts", sub.Name())
		if _, taken := files[path.Join(at, "Chart.yaml")]; taken {
			at += "-" + cmp.Or(sub.Metadata.Version, "other")
		}
		addFiles(files, at, sub)
	}
}

// ReleaseTarget returns the name and the namespaces of the Helm release of a HelmRelease.
func ReleaseTarget(hr *helmv2.HelmRelease) (name, namespace, storageNamespace string) {
	return shortenedRelease(hr.GetReleaseName()), hr.GetReleaseNamespace(), hr.GetStorageNamespace()
}

// maxReleaseName is the longest name that Helm accepts, in bytes. A longer name is cut and gets a part of its digest.
const maxReleaseName = 53

func shortenedRelease(name string) string {
	if len(name) <= maxReleaseName {
		return name
	}
	const kept, digest = 40, 12
	return name[:kept] + "-" + fmt.Sprintf("%x", sha256.Sum256([]byte(name)))[:digest]
}

// WriteChart writes a chart of the store with the version that helm-controller would set, and returns the files of its
// crds directory and those of its subcharts. With schemas it returns an error if a schema refers to a file outside of the
// chart. A library chart, which the helm command rejects, is written as an application without its own templates.
func WriteChart(w io.Writer, st *store.Store, artifact, version string, schemas bool) (crds [][]byte, err error) {
	c, err := LoadChart(st, artifact)
	if err != nil {
		return nil, err
	}
	if schemas {
		if err := chart.CheckSchemas(c); err != nil {
			return nil, err
		}
	}
	for _, f := range c.CRDObjects() {
		crds = append(crds, f.File.Data)
	}
	library := c.Metadata.Type == "library"
	if c.Metadata.Version == version && !library {
		file, err := st.OpenArtifact(artifact)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		_, err = io.Copy(w, file)
		return crds, err
	}
	c.Metadata.Version = version
	if library {
		c.Metadata.Type = ""
		c.Templates = slices.DeleteFunc(c.Templates, func(f *helmchart.File) bool { return !strings.HasPrefix(path.Base(f.Name), "_") })
	}
	return crds, chart.Package(w, c, time.Time{}, chart.Limits{Archive: maxWritten})
}

// maxWritten is the limit, in bytes, of a chart that is written for helm. The chart has passed other limits before.
const maxWritten = 100 << 20

// Unpacked unpacks the stored artifact of an object into a directory that is removed when the reconciler is closed.
func (r *Reconciler) Unpacked(ctx context.Context, result *Result) (string, error) {
	artifact := result.Artifact()
	if artifact == nil {
		return "", result.nothing()
	}
	root, err := r.unpack(ctx, artifact.Path)
	if err != nil {
		return "", err
	}
	return root.Name(), nil
}

// StoredArtifact returns the path of the artifact that an earlier run stored for a source, or "". If spec is not nil,
// the artifact must have been stored for an equivalent spec. The error for an altered artifact has the method Integrity.
func StoredArtifact(st *store.Store, key store.Key, spec map[string]any, now func() time.Time) (string, error) {
	result, err := (&recollection{store: st, key: key, at: addresses{st.Dir(), ""}, now: now}).result()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case result.Failure != nil && ClassOf(result.Failure) == Integrity:
		return "", fmt.Errorf("%s: %w", result.Object.Object, result.Failure)
	case result.Artifact() == nil:
		return "", nil
	}
	if spec != nil && !asksForSame(spec, manifest.At[map[string]any](result.Object.Object.Content, "spec")) {
		return "", nil
	}
	return filepath.Join(st.Dir(), filepath.FromSlash(result.Artifact().Path)), nil
}

// asksForSame reports whether two specs of a source are equal in the fields that name the location and the content.
func asksForSame(a, b map[string]any) bool {
	return !slices.ContainsFunc([]string{
		"url", "ref", "ignore", "include", "recurseSubmodules", "sparseCheckout", "layerSelector", "endpoint", "region", "bucketName", "prefix",
		"chart", "version", "sourceRef", "valuesFiles", "ignoreMissingValuesFiles",
	}, func(field string) bool {
		x, _ := json.Marshal(a[field])
		y, _ := json.Marshal(b[field])
		return string(x) != string(y)
	})
}

// UnpackInto unpacks an archive into a new directory below parent, and returns its path.
func UnpackInto(ctx context.Context, archive, parent string) (string, error) {
	from, err := file.Open(archive)
	if err != nil {
		return "", err
	}
	defer from.Close()
	root, err := newRoot(parent)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if err := tree.Unpack(ctx, from, root, tree.Limits{}); err != nil {
		return "", fmt.Errorf("artifact untar error: %w", err)
	}
	return root.Name(), nil
}
