package status

import (
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of HelmReleases, spelled as helm-controller spells them. None has a condition of its own: Ready is false.
const (
	AccessDenied     = Reason("AccessDenied") // stalls
	ArtifactFailed   = Reason("ArtifactFailed")
	SourceNotReady   = Reason("SourceNotReady")
	ValuesError      = Reason("ValuesError")
	ChartMutateError = Reason("ChartMutateError")
)

// The annotations by which a printed HelmRelease says which chart it has.
const (
	ChartAnnotation    = "helmsrc.dev/chart"
	VersionAnnotation  = "helmsrc.dev/chart-version"
	ArtifactAnnotation = "helmsrc.dev/artifact"
)

const fulfilling = "Fulfilling prerequisites"

// Fulfilled is the outcome of a release whose chart and values are known: as far as a run gets without a cluster.
func Fulfilled() *Observation {
	return &Observation{Progressing, "resolved; what comes next needs a cluster"}
}

// FoldRelease returns the conditions that helm-controller leaves on a HelmRelease whose prerequisites failed, or has on
// it just before it installs, and the generation that it would call observed.
func FoldRelease(prev Previous, o Outcome, now time.Time) ([]metav1.Condition, int64) {
	c := &conditions{generation: o.Generation, list: slices.Clone(prev.Conditions)}
	c.remove(meta.StalledCondition)
	c.setTrue(meta.ReconcilingCondition, Progressing, fulfilling)
	observed := prev.observedGeneration()
	switch f := o.Failure; {
	case f == nil && o.Stored != nil:
		c.set(meta.ReadyCondition, metav1.ConditionUnknown, o.Stored.Reason, o.Stored.Message)
	case f == nil:
		c.set(meta.ReadyCondition, metav1.ConditionUnknown, Progressing, fulfilling)
	case f.Stalled != "":
		c.remove(meta.ReconcilingCondition)
		c.setTrue(meta.StalledCondition, f.Stalled, f.Message)
		c.set(meta.ReadyCondition, metav1.ConditionFalse, f.Reason, f.Message)
		observed = o.Generation
	default:
		c.set(meta.ReadyCondition, metav1.ConditionFalse, f.Reason, f.Message)
	}
	return c.finish(prev.Conditions, now), observed
}

// ReleaseEvents returns the events of a HelmRelease: helm-controller warns of some of its failures only.
func ReleaseEvents(o Outcome) []Event {
	f := o.Failure
	if f == nil || f.Requeue {
		return o.Events
	}
	switch f.Reason {
	case AccessDenied, ArtifactFailed, ValuesError:
		return append(o.Events, Event{Warning: true, Reason: f.Reason, Message: f.Message})
	}
	return o.Events
}
