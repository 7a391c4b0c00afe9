package status

import (
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of ArtifactGenerators, spelled as source-watcher spells them. None has a condition of its own: Ready is false.
const (
	ValidationFailed     = Reason("ValidationFailed") // stalls
	SourceFetchFailed    = Reason("SourceFetchFailed")
	GeneratorBuildFailed = Reason(meta.BuildFailedReason)
)

// FoldGenerator returns the conditions that source-watcher leaves on an ArtifactGenerator. It has no observed generation of
// its own: the number is that of the conditions.
func FoldGenerator(prev Previous, o Outcome, now time.Time) ([]metav1.Condition, int64) {
	c := &conditions{generation: o.Generation, list: slices.Clone(prev.Conditions)}
	c.remove(meta.StalledCondition, meta.ReconcilingCondition)
	switch f := o.Failure; {
	case f == nil && o.Stored != nil:
		c.set(meta.ReadyCondition, metav1.ConditionTrue, o.Stored.Reason, o.Stored.Message)
	case f == nil:
		c.setTrue(meta.ReconcilingCondition, Progressing, "Reconciliation in progress")
		c.set(meta.ReadyCondition, metav1.ConditionUnknown, Progressing, "Reconciliation in progress")
	case f.Stalled != "":
		c.setTrue(meta.StalledCondition, f.Stalled, f.Message)
		c.set(meta.ReadyCondition, metav1.ConditionFalse, f.Reason, f.Message)
	default:
		c.setTrue(meta.ReconcilingCondition, ProgressingWithRetry, f.Message)
		c.set(meta.ReadyCondition, metav1.ConditionFalse, f.Reason, f.Message)
	}
	return c.finish(prev.Conditions, now), o.Generation
}

// FoldExternalArtifact returns the conditions of an ExternalArtifact, of which there is one.
func FoldExternalArtifact(prev Previous, o Outcome, now time.Time) ([]metav1.Condition, int64) {
	c := &conditions{generation: o.Generation}
	switch f := o.Failure; {
	case f != nil:
		c.set(meta.ReadyCondition, metav1.ConditionFalse, f.Reason, f.Message)
	case o.Stored != nil:
		c.set(meta.ReadyCondition, metav1.ConditionTrue, o.Stored.Reason, o.Stored.Message)
	default:
		c.set(meta.ReadyCondition, metav1.ConditionUnknown, Progressing, "Reconciliation in progress")
	}
	return c.finish(prev.Conditions, now), o.Generation
}
