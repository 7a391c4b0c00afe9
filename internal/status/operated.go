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

// OperatedChosen is the observation of a chart that is known and not fetched: the operator has no word for it.
func OperatedChosen(chart, version string) *Observation {
	return &Observation{Progressing, fmt.Sprintf("fetching chart: new '%s' chart with version '%s'", chart, version)}
}

// FoldOperated returns the conditions that the Helm Operator leaves on a HelmRelease whose chart and values it has, or fails to
// get. A failure of type ChartFetched that is to be waited out leaves the condition unknown; one of type Released comes after the
// chart, which Seen is about.
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

// OperatedPhase is the phase that the conditions make.
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

// OperatedFailure is the condition that says why a HelmRelease of Flux 1 is not well, nil if none does.
func OperatedFailure(list []metav1.Condition) *metav1.Condition {
	c := conditions{list: list}
	for _, typ := range []string{ReleasedCondition, ChartFetchedCondition} {
		if found := c.get(typ); found != nil && found.Status != metav1.ConditionTrue {
			return found
		}
	}
	return nil
}

// OperatedEvents returns the events of a HelmRelease of Flux 1 in the operator's words, except the one about a success, which it
// writes once it has released.
func OperatedEvents(o Outcome, release, namespace string) []Event {
	if o.Failure == nil {
		return o.Events
	}
	text := "synchronization of release '" + release + "' in namespace '" + namespace + "' failed: " + o.Failure.Message
	return append(o.Events, Event{Warning: true, Reason: "FailedReleaseSync", Message: text})
}
