package reconcile

import (
	"context"
	"errors"
	"fmt"
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

// choose goes as far as helm-controller does before it needs a
// cluster: to a chart and its values.
func (p *releaseReconciliation) choose(ctx context.Context) (*remainder, error) {
	hr := p.hr
	known, fingerprint := p.chart, p.fingerprint
	p.chart, p.fingerprint = store.ReleasedChart{}, "" // those of a success only
	p.warnDependencies(hr)
	if !p.r.o.Verify { // who signed a chart is asked of where it comes from
		p.result.Resolution = askedFor(hr)
	}
	source, err := p.releaseSource(ctx, hr)
	if err != nil {
		return nil, err
	}
	digest, err := p.composeValues(hr)
	if err != nil {
		return nil, err
	}
	if found := source.Resolution; found != nil && !p.r.o.Verify {
		resolution := *found
		p.result.Resolution = &resolution
	}
	if source.State == Resolved || source.Artifact() == nil { // known to a version only
		return nil, nil
	}
	name, err := p.attempt(hr, source, known.Name, fingerprint)
	if err != nil {
		return nil, err
	}
	version := hr.Status.LastAttemptedRevision
	hr.Status.LastAttemptedConfigDigest = digest
	p.chart = store.ReleasedChart{Name: p.adm.Object.Veil(name), Version: p.adm.Object.Veil(version), Artifact: source.Artifact().Path}
	p.result.noteChart(p.chart)
	p.result.Summary = fmt.Sprintf("resolved to chart '%s' with version '%s' from %s", name, version, source.Object.Object)
	p.out.Stored = status.Fulfilled()
	return nil, nil
}

// attempt fills in which chart would be installed, and returns its name. That of the artifact with the fingerprint known
// is the recorded name.
func (p *releaseReconciliation) attempt(hr *helmv2.HelmRelease, source *Result, name, known string) (string, error) {
	fingerprint, err := fingerprintOf(source.Artifact().Path, source.Artifact().Digest)
	if err != nil {
		return "", err
	}
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

// loadable reports that the artifact need not be read to know that it is a chart: it
// is that of a HelmChart, whose bytes this run has checked.
func (r *Result) loadable() bool {
	return r.State == Ready && r.Object.Object.Kind == sourcev1.HelmChartKind
}

// releaseSource reconciles what the release takes its chart from, and refuses one
// that is not ready.
func (p *releaseReconciliation) releaseSource(ctx context.Context, hr *helmv2.HelmRelease) (*Result, error) {
	adm, err := p.r.inventory.ReleaseSource(p.adm.Object, hr)
	switch {
	case finding.CodeOf(err) == finding.ForbiddenReference:
		return nil, status.AccessDenied.Stall(err)
	case err != nil:
		return nil, requeued(status.ArtifactFailed.Wrap(err))
	}
	if hr.Spec.Chart != nil {
		hr.Status.HelmChart = adm.Object.Namespace + "/" + adm.Object.Name
	} else {
		hr.Status.HelmChart = ""
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

// requeued is a failure that helm-controller waits out in silence.
func requeued(err error) error {
	failure := *status.AsFailure(err)
	failure.Requeue = true
	return &failure
}

// sourceNotReady inherits the class of what went wrong with the source.
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

// notReady says why a source cannot be used, "" if it can. It need not be Ready:
// one that failed now, but has an artifact of the same generation, is used.
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
	case source.Artifact() == nil && p.r.o.Until == Choose && source.Failure == nil && source.State != Suspended:
		return ""
	case source.Artifact() == nil:
		return "does not have an artifact"
	}
	return ""
}

// askedFor is what is known before the source is.
func askedFor(hr *helmv2.HelmRelease) *Resolution {
	if template := hr.Spec.Chart; template != nil {
		return &Resolution{Chart: template.Spec.Chart, Constraint: template.Spec.Version}
	}
	return &Resolution{}
}

// composeValues merges the values of the release and returns their digest. They are
// not used further: rendering the chart needs a cluster.
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
		return "", nil // no one knows the digest that the cluster comes to
	}
	digest, err := values.Digest(composed)
	if err != nil {
		return "", status.ValuesError.Wrap(err)
	}
	return digest.String(), nil
}

// noteValues records the digests of those values that come from ConfigMaps, so that a later run can say which of them
// changed. A digest of a Secret's value could be guessed, and so could that of a ConfigMap that was made of one.
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

// loadedChart reads which chart an artifact is. What a HelmChart has in storage
// was loaded when it was put there; a layer of an OCI artifact may be anything.
func (p *releaseReconciliation) loadedChart(source *Result) (*helmchart.Metadata, error) {
	if source.State == Ready && source.metadata != nil {
		return source.metadata, nil
	}
	file, err := p.r.store.OpenArtifact(source.Artifact().Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, requeued(status.ArtifactFailed.Wrap(errors.New("Source not ready: artifact not found. Retrying in 30s")))
	case err != nil:
		return nil, status.ArtifactFailed.Wrap(fmt.Errorf("Could not load chart: %w", err))
	}
	defer file.Close()
	limits := p.r.limits
	limits.Name = path.Base(source.Artifact().Path)
	if source.Object.Object.Kind == sourcev1.HelmChartKind {
		metadata, err := chart.Metadata(file, limits)
		return metadata, notLoaded(err)
	}
	metadata, warned, err := chart.Check(file, limits)
	p.warnEach(finding.OddSource, warned)
	if errors.Is(err, chart.ErrNoChart) {
		err = errors.New("Chart.yaml file is missing") // helm-controller leaves it to Helm, which has words of its own
	}
	if err != nil {
		return nil, notLoaded(&finding.Problem{Code: finding.InvalidArchive, Advice: layerHint(source.Object.Object), Err: err})
	}
	p.warnName(source, metadata)
	return metadata, nil
}

func notLoaded(err error) error {
	if err == nil {
		return nil
	}
	return status.ArtifactFailed.Wrap(fmt.Errorf("Could not load chart: %w", err))
}

// warnName warns of a chart whose name differs from that of the repository it lies in.
// Nothing compares them: a release installs whatever lies there.
func (p *releaseReconciliation) warnName(source *Result, metadata *helmchart.Metadata) {
	repo, ok := source.Object.Typed.(*sourcev1.OCIRepository)
	if !ok || chart.MatchName(metadata.Name, path.Base(repo.Spec.URL)) {
		return
	}
	p.warnAs(finding.OddSource, "%s holds a chart called '%s', not '%s' as its URL ends: nothing else shows whether it is the right one", source.Object.Object, metadata.Name, path.Base(repo.Spec.URL))
}

// warnDependencies warns of dependencies that no cluster would ever fulfil. They
// have no influence on fetching: helm-controller makes the HelmChart before it looks
// at them.
func (p *releaseReconciliation) warnDependencies(hr *helmv2.HelmRelease) {
	for _, w := range p.r.inventory.DependencyFaults(p.adm.Object, hr) {
		p.warnAt(w.Code, w.Message, "spec", "dependsOn", w.Index, "name")
	}
}

// layerHint says how a chart gets into the artifact of a source that has none.
func layerHint(source *manifest.Object) string {
	if source.Kind == sourcev1.ExternalArtifactKind {
		return "the artifact must contain the directory of one chart: copy it without /** to @artifact/"
	}
	return "spec.layerSelector of " + source.String() + " chooses the layer: a chart's has mediaType application/vnd.cncf.helm.chart.content.v1.tar+gzip and operation copy"
}

// mutateVersion is the version of a chart as helm-controller writes it into a
// release, and the digest of the revision that it comes from. Only artifacts whose
// revision is a digest put it into the version.
func mutateVersion(version string, source *Result) (mutated, digest string, err error) {
	kind, revision := source.Object.Object.Kind, source.Artifact().Revision
	if kind == sourcev1.HelmChartKind || kind == sourcev1.ExternalArtifactKind && !strings.Contains(revision, ":") {
		return version, "", nil // the revision of a chart, also where a generator took it over
	}
	return versionOfRevision(version, revision)
}

// versionOfRevision puts the beginning of a revision's digest into a version, in the
// place of whatever metadata it had. A tag that is a version has to be the chart's.
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

// tagHint is for a tag that reads as a version, but not as the chart's.
func tagHint(tag string) string {
	if strings.Count(tag, ".") < 2 {
		return fmt.Sprintf("helm-controller takes the tag '%s' for a version: name the chart's own tag, or use spec.ref.semver", tag)
	}
	return "the tag of a chart has to be its version"
}
