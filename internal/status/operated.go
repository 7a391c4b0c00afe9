package status

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The conditions of a HelmRelease of Flux 1 that need no cluster.
const (
	ChartFetchedCondition = "ChartFetched"
	ReleasedCondition     = "Released"
)

// Reasons of HelmReleases of Flux 1, spelled as the Helm Operator spells them.
const (
	RepoChartInCache       = Reason("RepoChartInCache")
	GitRepoCloned          = Reason("GitRepoCloned")
	RepoFetchFailed        = Reason("RepoFetchFailed")
	GitRepoNotCloned       = Reason("GitRepoNotCloned")
	UpdateDependencyFailed = Reason("UpdateDependencyFailed")
	ReleaseFailed          = Reason("Failed")
)

// ValuesChecksumAnnotation is the checksum of the values of a HelmRelease of Flux 1 in its document.
const ValuesChecksumAnnotation = "helmsrc.dev/values-checksum"

// The phases of a HelmRelease of Flux 1 that need no cluster.
const (
	PhaseChartFetched     = "ChartFetched"
	PhaseChartFetchFailed = "ChartFetchFailed"
	PhaseFailed           = "Failed"
)

// OperatedChosen returns the observation of a chart that is chosen but not fetched. The operator has no reason for it.
func OperatedChosen(chart, version string) *Observation {
	return &Observation{Progressing, fmt.Sprintf("fetching chart: new '%s' chart with version '%s'", chart, version)}
}

// FoldOperated returns the conditions that the Helm Operator leaves on a HelmRelease after it got, or failed to get, its chart
// and values. A transient failure of type ChartFetched leaves the condition unknown. A failure of type Released follows the
// fetch of the chart, which Seen describes.
func FoldOperated(prev Previous, o Outcome, now time.Time) ([]metav1.Condition, int64) {
	c := &conditions{}
	switch {
	case o.Failure != nil || o.Stored != nil:
	case o.Seen != nil && o.Seen.Reason == Progressing:
		c.set(ChartFetchedCondition, metav1.ConditionUnknown, Progressing, o.Seen.Message)
		return c.finish(prev.Conditions, now), 0
	default:
		return slices.Clone(prev.Conditions), 0
	}
	fetched := o.Stored
	if fetched == nil {
		fetched = o.Seen
	}
	if fetched != nil {
		c.setTrue(ChartFetchedCondition, fetched.Reason, fetched.Message)
	}
	switch f := o.Failure; {
	case f == nil:
	case f.Type == ReleasedCondition:
		c.set(ReleasedCondition, metav1.ConditionFalse, f.Reason, f.Message)
	case f.Requeue:
		c.set(ChartFetchedCondition, metav1.ConditionUnknown, f.Reason, f.Message)
	default:
		c.set(ChartFetchedCondition, metav1.ConditionFalse, f.Reason, f.Message)
		c.set(ReleasedCondition, metav1.ConditionFalse, f.Reason, f.Message)
	}
	return c.finish(prev.Conditions, now), 0
}

// OperatedPhase returns the phase that follows from the conditions.
func OperatedPhase(list []metav1.Condition) string {
	c := conditions{list: list}
	switch fetched := c.get(ChartFetchedCondition); {
	case fetched != nil && fetched.Reason == string(Progressing):
		return ""
	case fetched != nil && !c.is(ChartFetchedCondition, metav1.ConditionTrue):
		return PhaseChartFetchFailed
	case c.is(ReleasedCondition, metav1.ConditionFalse):
		return PhaseFailed
	case c.is(ChartFetchedCondition, metav1.ConditionTrue):
		return PhaseChartFetched
	}
	return ""
}

// OperatedFailure returns the condition that reports a failure of a HelmRelease of Flux 1, or nil.
func OperatedFailure(list []metav1.Condition) *metav1.Condition {
	c := conditions{list: list}
	for _, typ := range []string{ReleasedCondition, ChartFetchedCondition} {
		if found := c.get(typ); found != nil && found.Status != metav1.ConditionTrue {
			return found
		}
	}
	return nil
}

// OperatedEvents returns the events of a HelmRelease of Flux 1 in the operator's words, without that of a success, which the
// operator writes after the release.
func OperatedEvents(o Outcome, release, namespace string) []Event {
	if o.Failure == nil {
		return o.Events
	}
	text := "synchronization of release '" + release + "' in namespace '" + namespace + "' failed: " + o.Failure.Message
	return append(o.Events, Event{Warning: true, Reason: "FailedReleaseSync", Message: text})
}
