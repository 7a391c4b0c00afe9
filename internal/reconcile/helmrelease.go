package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	helmchart "helm.sh/helm/v3/pkg/chart"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/values"
)

// helmReleaseKind has the HelmRelease objects.
type helmReleaseKind struct {
	kindInfo
	goType[helmv2.HelmRelease, *helmv2.HelmRelease]
}

func newHelmReleaseKind() kind {
	return helmReleaseKind{kindInfo: kindInfo{
		group:      helmv2.GroupVersion.Group,
		name:       helmv2.HelmReleaseKind,
		plural:     "helmreleases",
		short:      "hr",
		noArtifact: true,
	}}
}

func (helmReleaseKind) whole(typed any) any { return &typed.(*helmv2.HelmRelease).Status }

func (helmReleaseKind) load(typed any) commonStatus {
	s := &typed.(*helmv2.HelmRelease).Status
	return commonStatus{s.ObservedGeneration, s.Conditions, nil, "", s.LastHandledReconcileAt}
}

func (helmReleaseKind) save(typed any, c commonStatus) {
	s := &typed.(*helmv2.HelmRelease).Status
	s.ObservedGeneration, s.Conditions, s.LastHandledReconcileAt = c.observedGeneration, c.conditions, c.handled
}

func (helmReleaseKind) suspended(typed any) bool { return typed.(*helmv2.HelmRelease).Spec.Suspend }

func (helmReleaseKind) sourceRef(typed any) (kind, namespace, name string) {
	return releaseSource(typed)
}

func (helmReleaseKind) fold(prev status.Previous, out status.Outcome, now time.Time) ([]metav1.Condition, int64) {
	return status.FoldRelease(prev, out, now)
}

func (k helmReleaseKind) midway(prev status.Previous, out status.Outcome, now time.Time) ([]metav1.Condition, int64) {
	return k.fold(prev, out, now)
}

func (helmReleaseKind) events(_ status.Previous, out status.Outcome) []status.Event {
	return status.ReleaseEvents(out)
}

func (helmReleaseKind) begin(p *reconciliation) objectSteps {
	return &releaseReconciliation{p, p.typed.(*helmv2.HelmRelease)}
}

func (p *releaseReconciliation) source() Source {
	h := heldBy(p.result)
	return &h
}

// releaseReconciliation is the reconciliation of one HelmRelease.
type releaseReconciliation struct {
	*reconciliation
	hr *helmv2.HelmRelease
}

// releaseSource is what a release takes its chart from: the HelmChart that is made
// for it, or what it names itself.
func releaseSource(typed any) (kind, namespace, name string) {
	hr := typed.(*helmv2.HelmRelease)
	switch ref := hr.Spec.ChartRef; {
	case ref != nil:
		return ref.Kind, ref.Namespace, ref.Name
	case hr.Spec.Chart != nil:
		return sourcev1.HelmChartKind, hr.Spec.Chart.GetNamespace(hr.Namespace), hr.GetHelmChartName()
	}
	return "", "", ""
}

// externalArtifact is the kind that only other controllers can fill.
const externalArtifact = sourcev1.ExternalArtifactKind

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
	if source.State == Resolved || source.artifact() == nil { // known to a version only
		return nil, nil
	}
	name, err := p.attempt(hr, source, known.Name, fingerprint)
	if err != nil {
		return nil, err
	}
	version := hr.Status.LastAttemptedRevision
	hr.Status.LastAttemptedConfigDigest = digest
	p.chart = store.ReleasedChart{Name: p.adm.Object.Veil(name), Version: p.adm.Object.Veil(version), Artifact: source.artifact().Path}
	p.result.noteChart(p.chart)
	p.result.Summary = fmt.Sprintf("resolved to chart '%s' with version '%s' from %s", name, version, source.Object.Object)
	p.out.Stored = status.Fulfilled()
	return nil, nil
}

// attempt fills in which chart would be installed, and returns its name. That of the artifact with the fingerprint known
// is the recorded name.
func (p *releaseReconciliation) attempt(hr *helmv2.HelmRelease, source *Result, name, known string) (string, error) {
	fingerprint, err := fingerprintOf(source.artifact().Path, source.artifact().Digest)
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

// loadable reports that the artifact need not be read to know that it holds a chart: it
// is that of a HelmChart, whose bytes this run has checked.
func (r *Result) loadable() bool {
	return r.State == Ready && r.Object.Object.Kind == sourcev1.HelmChartKind
}

// releaseSource reconciles what the release takes its chart from, and refuses one
// that is not ready.
func (p *releaseReconciliation) releaseSource(ctx context.Context, hr *helmv2.HelmRelease) (*Result, error) {
	adm, err := findSource(p.r.inventory, p.adm.Object, hr)
	if err != nil {
		return nil, err
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

// findSource finds the object that the release takes its chart from.
func findSource(inv *inventory.Inventory, obj *manifest.Object, hr *helmv2.HelmRelease) (*admission.Admitted, error) {
	if hr.Spec.Chart != nil {
		return madeChart(inv, obj)
	}
	kind, namespace, name := releaseSource(hr)
	if namespace == "" {
		namespace = hr.Namespace
	}
	if kind == "" { // admission lets an object without a spec pass
		return nil, requeued(status.ArtifactFailed.Wrap(finding.WithCode(finding.BrokenRule, errors.New("invalid Chart reference: either chart or chartRef must be set"))))
	}
	if err := inv.Access(hr.Namespace, kind, namespace, name); err != nil {
		return nil, status.AccessDenied.Stall(err)
	}
	adm, err := inv.FindFor(obj, kind, namespace, name)
	if kind == externalArtifact && (err != nil || adm.Object.Origin == nil) {
		if clash := inv.Clash(namespace, name); clash != nil {
			return nil, requeued(status.ArtifactFailed.Wrap(finding.WithCode(finding.ArtifactClash, clash)))
		}
		return nil, status.AccessDenied.Stall(&gateError{namespace, name})
	}
	if err != nil {
		return nil, noSourceObject(kind, name, err)
	}
	return adm, nil
}

// madeChart is the HelmChart of a release with a template.
func madeChart(inv *inventory.Inventory, obj *manifest.Object) (*admission.Admitted, error) {
	d := inv.Derivations().Of[obj]
	if d == nil { // Of an object that is not in the input
		return nil, status.ArtifactFailed.Wrap(errors.New("only a HelmRelease of the input has a HelmChart"))
	}
	var denied *inventory.AccessError
	switch {
	case errors.As(d.Err, &denied):
		return nil, status.AccessDenied.Stall(d.Err)
	case d.Err != nil:
		return nil, requeued(status.ArtifactFailed.Wrap(d.Err))
	}
	return inv.Admit(d.Chart)
}

// gateError is a chart of a kind that helm-controller does not read by default.
type gateError struct{ namespace, name string }

func (e *gateError) Error() string {
	return fmt.Sprintf("can't access '%s/%s/%s', %[1]s feature gate is disabled", externalArtifact, e.namespace, e.name)
}

// Finding is what is wrong.
func (*gateError) Finding() finding.Code { return finding.ForbiddenReference }

// Hint says why no flag opens that gate here.
func (e *gateError) Hint() string {
	return fmt.Sprintf("no ArtifactGenerator of the input makes it: add the file that holds one with -f, or name a directory in its place with --source %s/%s/%s=PATH", externalArtifact, e.namespace, e.name)
}

func noSourceObject(kind, name string, err error) error {
	return requeued(status.ArtifactFailed.Wrap(fmt.Errorf("could not get Source object: %w", &unavailableError{kind, name, err})))
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
	failure := &status.Failure{
		Type:    meta.ReadyCondition,
		Reason:  status.SourceNotReady,
		Message: fmt.Sprintf("%s '%s/%s' is not ready: %s", obj.Kind, obj.Namespace, obj.Name, why),
		Requeue: true,
	}
	switch {
	case source.Failure != nil:
		failure.Err = source.Failure.Err
	case source.State == Suspended:
		failure.Err = causeOf(source)
	}
	return failure
}

// notReady says why a source cannot be used, "" if it can. It need not be Ready:
// one that failed now, but holds an artifact of the same generation, is used.
func (p *releaseReconciliation) notReady(source *Result) string {
	if source.State == Resolved {
		return ""
	}
	if source.Object.Object.Kind == externalArtifact { // only its artifact counts
		if source.artifact() == nil && (p.r.o.Until == Fetch || source.Failure != nil) {
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
	case source.artifact() == nil && p.r.o.Until == Choose && source.Failure == nil && source.State != Suspended:
		return ""
	case source.artifact() == nil:
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

// composeValues merges the values of the release and returns their digest. They go
// nowhere: who renders the chart needs a cluster.
func (p *releaseReconciliation) composeValues(hr *helmv2.HelmRelease) (string, error) {
	inline, err := inlineValues(hr)
	if err != nil {
		return "", status.ValuesError.Wrap(err)
	}
	forgiven := func(err error) { p.debugf("%v", err) }
	refs, whole := hr.Spec.ValuesFrom, true
	if p.r.secrets.Forgiving() {
		refs = valuesAtHand(p.r.inventory, hr, func(i int, err error) {
			whole = false
			p.warnAt(finding.MissingSecret, err.Error(), "spec", "valuesFrom", i, "name")
		})
	}
	composed, err := values.Compose(hr.Namespace, refs, inline, valuesOf(p.r.inventory, hr.Namespace), forgiven)
	switch {
	case err != nil:
		return "", status.ValuesError.Wrap(err)
	case !whole:
		return "", nil // no one knows the digest that the cluster comes to
	}
	digest, err := values.Digest(composed)
	if err != nil {
		return "", status.ValuesError.Wrap(err)
	}
	return digest.String(), nil
}

// valuesAtHand are the references to values, those to Secrets that are not in the input marked as optional, so that the
// others can be composed without them.
func valuesAtHand(inv *inventory.Inventory, hr *helmv2.HelmRelease, absent func(i int, err error)) []meta.ValuesReference {
	refs := slices.Clone(hr.Spec.ValuesFrom)
	for i, ref := range refs {
		if ref.Kind != "Secret" || ref.Optional {
			continue
		}
		if _, err := inv.Set().Secret(hr.Namespace, ref.Name); is[*manifest.NotFoundError](err) {
			absent(i, fmt.Errorf("could not resolve %s: %w", values.Reference{Namespace: hr.Namespace, ValuesReference: ref}, err))
			refs[i].Optional = true
		}
	}
	return refs
}

// inlineValues refuses what helm-controller would take for no values at all. It reads
// them as YAML; they are the JSON that admission wrote, which reads faster and, nearly
// always, the same.
func inlineValues(hr *helmv2.HelmRelease) (map[string]any, error) {
	if hr.Spec.Values == nil || len(hr.Spec.Values.Raw) == 0 {
		return nil, nil
	}
	var inline map[string]any
	err := json.Unmarshal(hr.Spec.Values.Raw, &inline)
	if err == nil && inline != nil && !readsAsYAML(hr.Spec.Values.Raw) {
		if inline = hr.GetValues(); inline == nil {
			return nil, &valuesTypeError{}
		}
	}
	if err != nil {
		return nil, &valuesTypeError{}
	}
	return inline, nil
}

// maxYAMLKey is a little less than the 1024 characters that YAML allows a key.
const maxYAMLKey = 1000

// readsAsYAML is true of JSON that means the same in YAML. That forbids control characters
// that JSON does not, and some others next to them; it folds lines at one more, and wants
// short keys.
func readsAsYAML(text []byte) bool {
	length := 0
	for _, c := range text {
		switch c {
		case '"':
			length = 0
		case 0x7f, 0xc2, 0xef: // what UTF-8 has of U+0080 to U+009F, U+FFFE and U+FFFF begins like this
			return false
		}
		if length++; length > maxYAMLKey {
			return false
		}
	}
	return true
}

// valuesTypeError is a scalar or a list where values belong.
type valuesTypeError struct{}

func (*valuesTypeError) Error() string {
	return "spec.values is not a map: helm-controller would ignore it without a word"
}

// Finding is what is wrong.
func (*valuesTypeError) Finding() finding.Code { return finding.InvalidValues }

// valuesOf looks up what values come from, in one namespace.
func valuesOf(inv *inventory.Inventory, namespace string) values.Lookup {
	return func(kind, name string) (map[string][]byte, error) {
		if kind == "Secret" {
			secret, err := inv.Set().Secret(namespace, name)
			if err != nil {
				return nil, missing(err)
			}
			return secret.Data, nil
		}
		config, err := inv.Set().ConfigMap(namespace, name)
		if err != nil {
			return nil, missing(err)
		}
		data := make(map[string][]byte, len(config.Data))
		for k, v := range config.Data {
			data[k] = []byte(v)
		}
		return data, nil
	}
}

// missingError is an object that an optional reference need not have.
type missingError struct{ error }

func (e *missingError) Unwrap() error { return e.error }

func (e *missingError) Is(target error) bool { return target == fs.ErrNotExist }

func missing(err error) error {
	var notFound *manifest.NotFoundError
	if errors.As(err, &notFound) {
		return &missingError{err}
	}
	return err
}

// loadedChart reads which chart an artifact holds. What a HelmChart has in storage
// was loaded when it was put there; a layer of an OCI artifact may be anything.
func (p *releaseReconciliation) loadedChart(source *Result) (*helmchart.Metadata, error) {
	if known := source.Source().chart(); source.State == Ready && known != nil {
		return known, nil
	}
	file, err := p.r.store.OpenArtifact(source.artifact().Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, requeued(status.ArtifactFailed.Wrap(errors.New("Source not ready: artifact not found. Retrying in 30s")))
	case err != nil:
		return nil, status.ArtifactFailed.Wrap(fmt.Errorf("Could not load chart: %w", err))
	}
	defer file.Close()
	limits := p.r.limits
	limits.Name = path.Base(source.artifact().Path)
	if source.Object.Object.Kind == sourcev1.HelmChartKind {
		metadata, err := chart.Metadata(file, limits)
		return metadata, notLoaded(err)
	}
	metadata, odd, err := chart.Check(file, limits)
	p.warnEach(finding.OddArchive, odd)
	if err != nil {
		return nil, notLoaded(&loadError{source.Object.Object, err})
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

// loadError is an artifact that holds no chart.
type loadError struct {
	source *manifest.Object
	err    error
}

func (e *loadError) Error() string { return e.err.Error() }

// Finding is what is wrong.
func (*loadError) Finding() finding.Code { return finding.InvalidArchive }

func (e *loadError) Unwrap() error { return e.err }

// Hint names the field that chooses among the layers of an artifact.
func (e *loadError) Hint() string {
	return "spec.layerSelector of " + e.source.String() + " chooses the layer: a chart's has mediaType application/vnd.cncf.helm.chart.content.v1.tar+gzip and operation copy"
}

// warnName warns of a chart whose name differs from that of the repository it lies in.
// Nothing compares them: a release installs whatever lies there.
func (p *releaseReconciliation) warnName(source *Result, metadata *helmchart.Metadata) {
	repo, ok := source.Object.Typed.(*sourcev1.OCIRepository)
	if !ok || chart.MatchName(metadata.Name, path.Base(repo.Spec.URL)) {
		return
	}
	p.warnAs(finding.OtherName, "%s holds a chart called '%s', not '%s' as its URL ends: nothing else shows whether it is the right one", source.Object.Object, metadata.Name, path.Base(repo.Spec.URL))
}
