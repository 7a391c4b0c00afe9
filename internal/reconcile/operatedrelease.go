package reconcile

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/helmrepo"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/operator"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/values"
)

func operatedKind(group string) *kind {
	return kindOf(kind{
		group: group, name: operator.Kind + "." + group, plural: "helmreleases", short: "hr", noArtifact: true,
		folds: status.FoldOperated, makes: func(out status.Outcome) []status.Event { return out.Events },
	}, operatedParts, func(p *reconciliation, o *operator.HelmRelease) objectSteps { return &operatedReconciliation{p, o} })
}

// operatedParts converts the conditions, for which Flux 1 has its own type. An ignored HelmRelease counts as suspended: the
// operator has no field for suspension.
func operatedParts(o *operator.HelmRelease) parts {
	var conditions []metav1.Condition
	for _, own := range o.Status.Conditions {
		condition := metav1.Condition{Type: own.Type, Status: metav1.ConditionStatus(own.Status), Reason: own.Reason, Message: own.Message}
		if own.LastTransitionTime != nil {
			condition.LastTransitionTime = *own.LastTransitionTime
		}
		conditions = append(conditions, condition)
	}
	p := parts{status: &o.Status, conditions: &conditions, suspended: o.Ignored()}
	p.sourceKind, p.sourceNamespace, p.sourceName = inventory.OperatedReference(o)
	p.saved = func() {
		o.Status.Conditions = nil
		for _, condition := range conditions {
			date := condition.LastTransitionTime.DeepCopy()
			o.Status.Conditions = append(o.Status.Conditions, operator.Condition{
				Type: condition.Type, Status: string(condition.Status), Reason: condition.Reason, Message: condition.Message,
				LastUpdateTime: date, LastTransitionTime: date,
			})
		}
		o.Status.Phase = status.OperatedPhase(conditions)
	}
	return p
}

type operatedReconciliation struct {
	*reconciliation
	hr *operator.HelmRelease
}

// perform does the work that the operator does without a cluster: it finds the chart and composes the values.
func (p *operatedReconciliation) perform(ctx context.Context) error {
	hr := p.hr
	p.chart = store.ReleasedChart{}
	p.fingerprint = ""
	hr.Status.ReleaseName = hr.GetReleaseName()
	p.out.Events = nil
	if !p.r.o.Verify {
		p.result.Resolution = &Resolution{Chart: hr.Spec.Chart.Name, Constraint: hr.Spec.Chart.Version}
	}
	source, err := p.fetchedChart(ctx)
	if err != nil {
		return p.failedAs(err)
	}
	composed, err := p.composeValues(ctx)
	if err != nil {
		return p.failedAs(err)
	}
	if err := p.checkOwner(); err != nil {
		return p.failedAs(err)
	}
	p.resolvedAs(source)
	if source.State == Resolved || source.Artifact() == nil { // only the version is known
		p.out.Seen = nil
		if found := source.Resolution; found != nil {
			p.out.Seen = status.OperatedChosen(found.Chart, found.Version)
		}
		return nil
	}
	p.out.Stored = p.out.Seen
	return p.complete(source, composed)
}

// complete records the chart and the values that would be released.
func (p *operatedReconciliation) complete(source *Result, composed map[string]any) error {
	hr := p.hr
	metadata, err := p.chartOf(source, chart.Metadata)
	if err != nil {
		return p.failedAs(status.RepoFetchFailed.Wrap(fmt.Errorf("chart download failed: %w", err)))
	}
	hr.Status.LastAttemptedRevision = metadata.Version
	if hr.Spec.Chart.Source() == operator.GitSource {
		hr.Status.LastAttemptedRevision = p.commit(source)
	}
	p.releases(source, metadata.Name, metadata.Version)
	if composed != nil {
		sum, err := values.Checksum(composed)
		if err != nil {
			return p.failedAs(valuesFailure(err))
		}
		p.result.note(status.ValuesChecksumAnnotation, sum)
	}
	return nil
}

// failedAs adds the event that the operator would send for a failure.
func (p *operatedReconciliation) failedAs(err error) error {
	if failure := status.AsFailure(err); failure != nil {
		out := status.Outcome{Failure: failure}
		p.out.Events = append(p.out.Events, status.OperatedEvents(out, p.hr.GetReleaseName(), p.hr.GetTargetNamespace())...)
	}
	return err
}

// fetchedChart reconciles the HelmChart that is derived from the release, and reports it with the operator's messages.
func (p *operatedReconciliation) fetchedChart(ctx context.Context) (*Result, error) {
	adm, err := p.r.inventory.OperatedChart(p.adm.Object)
	switch {
	case finding.CodeOf(err) == finding.RefusedName:
		return nil, releaseFailure(err)
	case err != nil:
		return nil, status.RepoFetchFailed.Wrap(err)
	}
	result := p.r.result(ctx, adm)
	if result.State == Interrupted {
		return nil, context.Cause(ctx)
	}
	git := p.hr.Spec.Chart.Source() == operator.GitSource
	switch {
	case result.Failure != nil && git:
		return nil, p.gitFailure(ctx, result)
	case result.Failure != nil:
		return nil, p.repositoryFailure(ctx, result)
	case git:
		p.out.Seen = &status.Observation{Reason: status.GitRepoCloned, Message: "successfully cloned chart revision: " + p.commit(result)}
	case result.Artifact() != nil:
		p.out.Seen = &status.Observation{Reason: status.RepoChartInCache, Message: "chart fetched: " + path.Base(result.Artifact().Path)}
	}
	return result, nil
}

// releaseFailure returns a failure after the chart was fetched.
func releaseFailure(err error) error {
	return &status.Failure{Type: status.ReleasedCondition, Reason: status.ReleaseFailed, Message: err.Error(), Err: err}
}

func valuesFailure(err error) error {
	return releaseFailure(fmt.Errorf("failed to compose values for release: %w", err))
}

func (p *operatedReconciliation) causeOfChart(ctx context.Context, chart *Result) (source bool, failure *status.Failure) {
	obj := p.r.inventory.OperatedSource(p.adm.Object)
	if obj == nil {
		return false, chart.Failure
	}
	adm, err := p.r.inventory.Admit(obj)
	if err != nil {
		return false, chart.Failure
	}
	if result := p.r.result(ctx, adm); result.Failure != nil {
		return true, result.Failure
	}
	return false, chart.Failure
}

// consequence returns the failure of a release whose chart failed.
func consequence(chart *Result, err error) error {
	return finding.WithCode(finding.SourceNotReady, &blockedError{chart.Object.Object, err})
}

func (p *operatedReconciliation) repositoryFailure(ctx context.Context, chart *Result) error {
	_, cause := p.causeOfChart(ctx, chart)
	return status.RepoFetchFailed.Wrap(consequence(chart, fmt.Errorf("chart download failed: %w", cause)))
}

func (p *operatedReconciliation) gitFailure(ctx context.Context, chart *Result) error {
	ofSource, cause := p.causeOfChart(ctx, chart)
	f := &status.Failure{Type: status.ChartFetchedCondition, Reason: status.RepoFetchFailed, Message: "chart download failed: " + cause.Message, Err: consequence(chart, cause)}
	switch {
	case ofSource && (fetch.Transient(cause) || cause.Reason == status.AuthenticationFailed):
		f.Reason, f.Message, f.Requeue = status.GitRepoNotCloned, "git repo not mirrored yet: "+cause.Message, true
	case ofSource:
		f.Reason, f.Message = status.GitRepoNotCloned, "problem cloning from local git mirror: "+cause.Message
	case cause.Reason == status.DependencyBuildError:
		f.Type, f.Reason, f.Message = status.ReleasedCondition, status.UpdateDependencyFailed, cause.Message
		p.out.Seen = &status.Observation{Reason: status.GitRepoCloned, Message: "successfully cloned chart revision: " + p.commit(chart)}
	}
	return f
}

func (p *operatedReconciliation) commit(chart *Result) string {
	source, err := p.sourceOf(context.Background(), chart.Object) // already known: the chart waited for it
	switch {
	case err != nil:
		return ""
	case source.Pin != nil && source.Pin.Revision != "":
		return revisionHash(source.Pin.Revision)
	case source.Artifact() != nil:
		return revisionHash(source.Artifact().Revision)
	}
	return ""
}

// sourceOf reconciles the source of the HelmChart that is derived from the release.
func (p *operatedReconciliation) sourceOf(ctx context.Context, chart *admission.Admitted) (*Result, error) {
	obj := chart.Typed.(*sourcev1.HelmChart)
	adm, err := p.r.inventory.Find(obj.Spec.SourceRef.Kind, obj.Namespace, obj.Spec.SourceRef.Name)
	if err != nil {
		return nil, err
	}
	return p.r.result(ctx, adm), nil
}

// checkOwner returns an error if another HelmRelease of the input has the same Helm release: the operator checks the owner of
// the resources after it has the chart and the values.
func (p *operatedReconciliation) checkOwner() error {
	if p.r.o.Verify {
		return nil
	}
	own, others := p.r.inventory.SameRelease(p.adm.Object, p.hr)
	if len(others) > 0 {
		p.warnAt(finding.SharedRelease, inventory.SharedReleaseText(p.hr, others), "metadata", "name")
	}
	if len(own) == 0 {
		return nil
	}
	return releaseFailure(fmt.Errorf("failed to determine sync action for release: %w", inventory.ReleaseClash(p.hr, own)))
}

// composeValues merges the values of the release. It returns nil if a part of them is unknown here.
func (p *operatedReconciliation) composeValues(ctx context.Context) (map[string]any, error) {
	inline, err := inventory.OperatedInline(p.hr)
	if err != nil {
		return nil, valuesFailure(err)
	}
	parts, err := p.r.inventory.OperatedParts(p.hr, p.readers(ctx))
	if err != nil {
		return nil, valuesFailure(err)
	}
	for i := range parts {
		if parts[i].Kind == "URL" { // redacted, because the name is shown
			parts[i].Name = auth.RedactURL(parts[i].Name)
		}
	}
	whole := true
	if p.r.secrets.Forgiving() {
		for i := range parts {
			whole = p.forgiveSecret(&parts[i]) && whole
		}
	}
	composed, origins, err := values.MergeParts(parts, inline, func(err error) { p.debugf("%v", err) })
	if err != nil {
		return nil, valuesFailure(err)
	}
	p.result.composed = &Composed{composed, origins}
	p.noteValues(composed, origins)
	if !whole {
		return nil, nil
	}
	return composed, nil
}

// forgiveSecret reports whether a part is available. It makes a Secret that is not in the input optional.
func (p *operatedReconciliation) forgiveSecret(part *values.Part) bool {
	if part.Kind != "Secret" || part.Optional {
		return true
	}
	_, err := part.Read()
	if _, missing := errors.AsType[*manifest.NotFoundError](err); !missing {
		return true
	}
	p.warnAt(finding.MissingSecret, err.Error(), part.Path...)
	part.Optional = true
	return false
}

// readers returns the functions that read values outside of manifests.
func (p *operatedReconciliation) readers(ctx context.Context) inventory.OperatedReaders {
	return inventory.OperatedReaders{
		URL:       func(url string) ([]byte, error) { return p.r.valuesAt(ctx, url) },
		ChartFile: func(name string) ([]byte, error) { return p.chartFile(ctx, name) },
	}
}

// errRepositoryFile is an error for the operator too: it joins the path to that of the archive.
var errRepositoryFile = errors.New("a chart of a repository has no directory")

// chartFile reads a file of values relative to the directory of a chart in a Git repository. It may be outside of the chart, but
// not outside of the repository.
func (p *operatedReconciliation) chartFile(ctx context.Context, name string) ([]byte, error) {
	data, err := p.readChartFile(ctx, name)
	if err != nil {
		return nil, finding.WithCode(finding.InvalidValues, fmt.Errorf("unable to read value file from path %s: %w", name, err))
	}
	return data, nil
}

func (p *operatedReconciliation) readChartFile(ctx context.Context, name string) ([]byte, error) {
	if p.hr.Spec.Chart.Source() != operator.GitSource {
		return nil, errRepositoryFile
	}
	made, err := p.r.inventory.OperatedChart(p.adm.Object)
	if err != nil {
		return nil, err
	}
	source, err := p.sourceOf(ctx, made)
	if err != nil {
		return nil, err
	}
	from, err := source.tree(ctx)
	if err != nil {
		return nil, err
	}
	root, err := from.files(ctx)
	if err != nil {
		return nil, err
	}
	return chart.Source{Root: root, Filter: from.filter, Limits: p.r.limits}.ReadFile(path.Clean(made.Typed.(*sourcev1.HelmChart).Spec.Chart) + "/" + name)
}

// valuesTimeout is the timeout for values from a URL. The operator has no limit.
const valuesTimeout = time.Minute

func (r *Reconciler) valuesAt(ctx context.Context, url string) ([]byte, error) {
	data, err := r.valueFiles.Do(ctx, url, func() ([]byte, error) {
		limit := cmp.Or(r.limits.File, maxValuesFile)
		tooLarge := fetch.NewSizeError(fmt.Sprintf("it is larger than the maximum chart file size of %d bytes", limit))
		var body sinkBuffer
		err := helmrepo.File(ctx, r.client, url, valuesTimeout, &body, limit, tooLarge)
		return body.Bytes(), err
	})
	if err != nil {
		return nil, &finding.Problem{ // the operator's message
			Code: finding.MissingValues, Text: "unable to read value file from URL " + auth.RedactURL(url), Advice: auth.RedactText(err.Error()), Err: err,
		}
	}
	return data, nil
}

const maxValuesFile = 5 << 20

type sinkBuffer struct{ bytes.Buffer }

// Reset discards the beginning of a download before a retry.
func (b *sinkBuffer) Reset() error {
	b.Buffer.Reset()
	return nil
}
