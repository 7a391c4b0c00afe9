package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/Masterminds/semver/v3"
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	helmchart "helm.sh/helm/v3/pkg/chart"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/values"
)

type releaseReconciliation struct {
	*reconciliation
	hr *helmv2.HelmRelease
}

// perform does the work that helm-controller does without a cluster: it finds
// the chart and composes the values.
func (p *releaseReconciliation) perform(ctx context.Context) error {
	hr := p.hr
	known, fingerprint := p.chart, p.fingerprint
	p.chart, p.fingerprint = store.ReleasedChart{}, "" // set only on success
	p.warnDependencies(hr)
	if !p.r.o.Verify { // a signature is verified by the chart's source
		p.result.Resolution = askedFor(hr)
	}
	source, err := p.releaseSource(ctx, hr)
	if err != nil {
		return err
	}
	digest, err := p.composeValues(hr)
	if err != nil {
		return err
	}
	p.resolvedAs(source)
	if source.State == Resolved || source.Artifact() == nil { // only the version is known
		return nil
	}
	name, err := p.attempt(hr, source, known.Name, fingerprint)
	if err != nil {
		return err
	}
	hr.Status.LastAttemptedConfigDigest = digest
	p.releases(source, name, hr.Status.LastAttemptedRevision)
	p.out.Stored = status.Fulfilled()
	return nil
}

// resolvedAs takes the version of a release from its source. In a run that only verifies, the source reports it.
func (p *reconciliation) resolvedAs(source *Result) {
	if found := source.Resolution; found != nil && !p.r.o.Verify {
		resolution := *found
		p.result.Resolution = &resolution
	}
}

// releases records the chart that a release would install.
func (p *reconciliation) releases(source *Result, name, version string) {
	p.chart = store.ReleasedChart{Name: p.adm.Object.Veil(name), Version: p.adm.Object.Veil(version), Artifact: source.Artifact().Path}
	p.result.noteChart(p.chart)
	p.result.Summary = fmt.Sprintf("resolved to chart '%s' with version '%s' from %s", name, version, source.Object.Object)
}

// chartOf returns the metadata of the chart in an artifact, which it reads unless this run has stored it.
func (p *reconciliation) chartOf(source *Result, read func(io.Reader, chart.Limits) (*helmchart.Metadata, error)) (*helmchart.Metadata, error) {
	if source.State == Ready && source.metadata != nil {
		return source.metadata, nil
	}
	file, err := p.r.store.OpenArtifact(source.Artifact().Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return read(file, p.r.limits.Named(path.Base(source.Artifact().Path)))
}

// attempt records the chart that would be installed, and returns its name. If the artifact still has the fingerprint
// known, the recorded name is returned.
func (p *releaseReconciliation) attempt(hr *helmv2.HelmRelease, source *Result, name, known string) (string, error) {
	fingerprint := fingerprintOf(source.Artifact().Path, source.Artifact().Digest)
	if known == fingerprint && !p.rebuild && source.loadable() && name != "" {
		p.fingerprint = fingerprint
		return name, nil
	}
	metadata, err := p.loadedChart(source)
	if err != nil {
		return "", err
	}
	version, revision, err := mutateVersion(metadata.Version, source)
	if err != nil {
		return "", status.ChartMutateError.Wrap(err)
	}
	hr.Status.LastAttemptedRevision = version
	hr.Status.LastAttemptedRevisionDigest = revision
	p.fingerprint = fingerprint
	return metadata.Name, nil
}

// loadable reports whether the artifact is known to be a chart without reading it:
// it is the artifact of a HelmChart, whose bytes this run has checked.
func (r *Result) loadable() bool {
	return r.State == Ready && r.Object.Object.Kind == sourcev1.HelmChartKind
}

// releaseSource reconciles the source of the release's chart, and returns an
// error if it is not ready.
func (p *releaseReconciliation) releaseSource(ctx context.Context, hr *helmv2.HelmRelease) (*Result, error) {
	if hr.Spec.Chart == nil { // helm-controller deletes its HelmChart before it looks for the source
		hr.Status.HelmChart = ""
	}
	adm, err := p.r.inventory.ReleaseSource(p.adm.Object, hr)
	switch {
	case finding.CodeOf(err) == finding.ForbiddenReference:
		return nil, status.AccessDenied.Stall(err)
	case err != nil:
		return nil, requeued(status.ArtifactFailed.Wrap(err))
	}
	if hr.Spec.Chart != nil {
		hr.Status.HelmChart = adm.Object.Namespace + "/" + adm.Object.Name
	}
	result := p.r.result(ctx, adm)
	if result.State == Interrupted {
		return nil, context.Cause(ctx)
	}
	if why := p.notReady(result); why != "" {
		return nil, sourceNotReady(result, why)
	}
	return result, nil
}

// requeued returns err as a failure after which helm-controller requeues without an event.
func requeued(err error) error {
	failure := *status.AsFailure(err)
	failure.Requeue = true
	return &failure
}

// sourceNotReady returns a failure that inherits the class of the source's own failure.
func sourceNotReady(source *Result, why string) error {
	obj := source.Object.Object
	return &status.Failure{
		Type:    meta.ReadyCondition,
		Reason:  status.SourceNotReady,
		Message: fmt.Sprintf("%s '%s/%s' is not ready: %s", obj.Kind, obj.Namespace, obj.Name, why),
		Requeue: true,
		Err:     causeOf(source),
	}
}

// notReady returns why a source cannot be used, "" if it can. The source need not be
// Ready: a source that failed now, but has an artifact of the same generation, is used.
func (p *releaseReconciliation) notReady(source *Result) string {
	if source.State == Resolved {
		return ""
	}
	if source.Object.Object.Kind == sourcev1.ExternalArtifactKind { // only its artifact counts
		if source.Artifact() == nil && (p.r.o.Until == Fetch || source.Failure != nil) {
			return "does not have an artifact"
		}
		return ""
	}
	generation, observed := generationOf(source.Object.Typed), source.common.observedGeneration
	ready := apimeta.FindStatusCondition(source.common.conditions, meta.ReadyCondition)
	stalled := apimeta.FindStatusCondition(source.common.conditions, meta.StalledCondition)
	switch {
	case generation != observed && ready != nil && ready.Status == metav1.ConditionFalse:
		return ready.Message
	case generation != observed:
		return "latest generation of object has not been reconciled"
	case stalled != nil && stalled.Status == metav1.ConditionTrue:
		return stalled.Message
	case source.Artifact() == nil && p.choosing() && source.Failure == nil && source.State != Suspended:
		return ""
	case source.Artifact() == nil:
		return "does not have an artifact"
	}
	return ""
}

// askedFor returns the chart and the version range that the release asks for, which are known before its source.
func askedFor(hr *helmv2.HelmRelease) *Resolution {
	if template := hr.Spec.Chart; template != nil {
		return &Resolution{Chart: template.Spec.Chart, Constraint: template.Spec.Version}
	}
	return &Resolution{}
}

// composeValues merges the values of the release and returns their digest. The
// values have no other use: rendering the chart needs a cluster.
func (p *releaseReconciliation) composeValues(hr *helmv2.HelmRelease) (string, error) {
	inline, err := inventory.InlineValues(hr)
	if err != nil {
		return "", status.ValuesError.Wrap(err)
	}
	forgiven := func(err error) { p.debugf("%v", err) }
	refs, whole := hr.Spec.ValuesFrom, true
	if p.r.secrets.Forgiving() {
		refs = p.r.inventory.AvailableValues(hr, func(i int, err error) {
			whole = false
			p.warnAt(finding.MissingSecret, err.Error(), "spec", "valuesFrom", i, "name")
		})
	}
	composed, origins, err := values.Trace(hr.Namespace, refs, inline, p.r.inventory.Values(hr.Namespace), forgiven)
	switch {
	case err != nil:
		return "", status.ValuesError.Wrap(err)
	}
	p.noteValues(composed, origins)
	if !whole {
		return "", nil // the digest that the cluster computes is unknown
	}
	digest, err := values.Digest(composed)
	if err != nil {
		return "", status.ValuesError.Wrap(err)
	}
	return digest.String(), nil
}

// noteValues records the digests of the values from public ConfigMaps, so that a later run can report which of them
// changed. A digest of a Secret's value could be guessed, as could that of a ConfigMap made from a Secret.
func (p *reconciliation) noteValues(composed map[string]any, origins *values.Origins) {
	public := map[[2]string]bool{}
	for _, ref := range origins.References() {
		if ref.Kind == "ConfigMap" && p.r.inventory.Public(ref.Namespace, ref.Name) {
			public[[2]string{ref.Namespace, ref.Name}] = true
		}
	}
	if len(public) == 0 {
		return
	}
	p.result.Values = values.Digests(composed, func(value any, path ...any) bool {
		ref, _ := origins.Of(value, path...)
		return ref != nil && ref.Kind == "ConfigMap" && public[[2]string{ref.Namespace, ref.Name}]
	})
}

// loadedChart returns the metadata of the chart in an artifact. The artifact of a HelmChart
// was validated when it was stored; a layer of an OCI artifact may hold any content.
func (p *releaseReconciliation) loadedChart(source *Result) (*helmchart.Metadata, error) {
	read := chart.Metadata
	if source.Object.Object.Kind != sourcev1.HelmChartKind {
		read = func(file io.Reader, limits chart.Limits) (*helmchart.Metadata, error) {
			return p.checkedChart(source, file, limits)
		}
	}
	metadata, err := p.chartOf(source, read)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, requeued(status.ArtifactFailed.Wrap(errors.New("Source not ready: artifact not found. Retrying in 30s")))
	case err != nil:
		return nil, status.ArtifactFailed.Wrap(fmt.Errorf("Could not load chart: %w", err))
	}
	return metadata, nil
}

func (p *releaseReconciliation) checkedChart(source *Result, file io.Reader, limits chart.Limits) (*helmchart.Metadata, error) {
	metadata, warned, err := chart.Check(file, limits)
	p.warnEach(finding.OddSource, warned)
	if errors.Is(err, chart.ErrNoChart) {
		err = errors.New("Chart.yaml file is missing") // helm-controller passes on Helm's message
	}
	if err != nil {
		return nil, &finding.Problem{Code: finding.InvalidArchive, Advice: layerHint(source.Object.Object), Err: err}
	}
	p.warnName(source, metadata)
	return metadata, nil
}

// warnName warns about a chart whose name differs from the last element of the repository's
// URL. Nothing compares them: a release installs whichever chart the repository holds.
func (p *releaseReconciliation) warnName(source *Result, metadata *helmchart.Metadata) {
	repo, ok := source.Object.Typed.(*sourcev1.OCIRepository)
	if !ok || chart.MatchName(metadata.Name, path.Base(repo.Spec.URL)) {
		return
	}
	p.warnAs(finding.OddSource, "%s contains a chart called '%s', but its URL ends in '%s': check that it is the intended chart", source.Object.Object, metadata.Name, path.Base(repo.Spec.URL))
}

// warnDependencies warns about dependencies that no cluster would ever fulfil. They
// do not affect the fetch: helm-controller creates the HelmChart before it checks
// them.
func (p *releaseReconciliation) warnDependencies(hr *helmv2.HelmRelease) {
	for _, w := range p.r.inventory.DependencyFaults(p.adm.Object, hr) {
		p.warnAt(w.Code, w.Message, "spec", "dependsOn", w.Index, "name")
	}
}

// layerHint returns advice on how to put a chart into the artifact of a source that has no chart.
func layerHint(source *manifest.Object) string {
	if source.Kind == sourcev1.ExternalArtifactKind {
		return "the artifact must contain the directory of one chart: copy it without /** to @artifact/"
	}
	return "spec.layerSelector of " + source.String() + " chooses the layer: a chart's has mediaType application/vnd.cncf.helm.chart.content.v1.tar+gzip and operation copy"
}

// mutateVersion returns the version of a chart as helm-controller writes it into a
// release, and the digest of the revision that it comes from. Only a revision that
// is a digest becomes part of the version.
func mutateVersion(version string, source *Result) (mutated, digest string, err error) {
	kind, revision := source.Object.Object.Kind, source.Artifact().Revision
	if kind == sourcev1.HelmChartKind || kind == sourcev1.ExternalArtifactKind && !strings.Contains(revision, ":") {
		return version, "", nil // the revision of a chart, also where a generator took it over
	}
	return versionOfRevision(version, revision)
}

// versionOfRevision replaces the build metadata of a version with the beginning of a
// revision's digest. A tag that is a version must be the version of the chart.
func versionOfRevision(version, revision string) (mutated, digest string, err error) {
	parsed, err := semver.NewVersion(version)
	if err != nil {
		return "", "", fmt.Errorf("invalid chart version %s", version)
	}
	tag, digest, tagged := strings.Cut(revision, "@")
	if !tagged {
		tag, digest = "", revision
	}
	if tagVersion, err := semver.NewVersion(strings.ReplaceAll(tag, "_", "+")); tagged && err == nil {
		if strings.Contains(digest, "@") || !tagVersion.Equal(parsed) {
			return "", "", &finding.Problem{
				Code: finding.ChartTag, Text: fmt.Sprintf("artifact revision %s does not match chart version %s", tag, version), Advice: tagHint(tag),
			}
		}
	}
	_, hex, ok := strings.Cut(digest, ":")
	if !ok || strings.Contains(hex, ":") || len(hex) < revisionLength {
		return "", "", fmt.Errorf("invalid artifact revision %s", revision)
	}
	suffixed, err := parsed.SetMetadata(hex[:revisionLength])
	if err != nil {
		return "", "", fmt.Errorf("invalid artifact revision %s", revision)
	}
	return suffixed.String(), digest, nil
}

// tagHint returns advice for a tag that parses as a version, but not as the chart's.
func tagHint(tag string) string {
	if strings.Count(tag, ".") < 2 {
		return fmt.Sprintf("helm-controller treats the tag '%s' as a version: name the chart's own tag, or use spec.ref.semver", tag)
	}
	return "the tag of a chart must be its version"
}
