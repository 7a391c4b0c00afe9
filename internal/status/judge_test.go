package status_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	fluxconditions "github.com/fluxcd/pkg/runtime/conditions"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/helmsrc/helmsrc/internal/status"
)

// fluxObject is an object that Flux's condition code can process.
type fluxObject interface {
	fluxconditions.Setter
	SetGeneration(int64)
}

// judge simulates a run step by step as source-controller's reconcilers do, with Flux's own condition code, and returns the
// resulting conditions and observed generation. It applies to HelmRepository, HelmChart and OCIRepository.
func judge(kind string, prev status.Previous, o status.Outcome) ([]metav1.Condition, int64) {
	var obj fluxObject = &sourcev1.HelmRepository{}
	switch kind {
	case sourcev1.HelmChartKind:
		obj = &sourcev1.HelmChart{}
	case sourcev1.OCIRepositoryKind:
		obj = &sourcev1.OCIRepository{}
	}
	obj.SetGeneration(o.Generation)
	obj.SetConditions(append([]metav1.Condition(nil), prev.Conditions...))
	observed := prev.ObservedGeneration
	if observed == 0 {
		observed = -1
	}

	judgeProgress(obj, false, "reconciliation in progress")
	if observed != o.Generation {
		judgeProgress(obj, false, fmt.Sprintf("processing object: new generation %d -> %d", observed, o.Generation))
	}
	hasArtifact := prev.Artifact != nil && !prev.Disappeared
	judgeStorage(obj, prev, hasArtifact)
	err := judgeSource(kind, obj, o, hasArtifact)
	if err == nil {
		err = judgeArtifact(obj, o)
	}
	return judgeResult(kind, obj, err, observed)
}

func judgeProgress(obj fluxObject, drift bool, message string) {
	fluxconditions.MarkReconciling(obj, meta.ProgressingReason, "%s", message)
	if drift || fluxconditions.IsUnknown(obj, meta.ReadyCondition) { // also when it is not there
		fluxconditions.MarkUnknown(obj, meta.ReadyCondition, meta.ProgressingReason, "%s", message)
	}
}

func judgeStorage(obj fluxObject, prev status.Previous, hasArtifact bool) {
	if hasArtifact {
		return
	}
	message := "building artifact"
	if prev.Disappeared {
		message += ": disappeared from storage"
	}
	judgeProgress(obj, true, message)
	fluxconditions.Delete(obj, sourcev1.ArtifactInStorageCondition)
}

func judgeSource(kind string, obj fluxObject, o status.Outcome, hasArtifact bool) error {
	chart, oci := kind == sourcev1.HelmChartKind, kind == sourcev1.OCIRepositoryKind
	if (chart || oci) && fluxconditions.IsFalse(obj, sourcev1.SourceVerifiedCondition) {
		fluxconditions.Delete(obj, sourcev1.SourceVerifiedCondition)
	}
	failed := o.Failure
	if failed != nil && failed.Type == sourcev1.StorageOperationFailedCondition {
		failed = nil
	}
	if failed == nil {
		fluxconditions.Delete(obj, sourcev1.FetchFailedCondition)
	}
	// An OCIRepository knows the revision before most failures can occur.
	if o.Seen != nil && (failed == nil || oci) {
		if hasArtifact {
			fluxconditions.MarkTrue(obj, sourcev1.ArtifactOutdatedCondition, string(o.Seen.Reason), "%s", o.Seen.Message)
		}
		judgeProgress(obj, true, "building artifact: "+o.Seen.Message)
	}
	if chart && failed == nil {
		fluxconditions.Delete(obj, sourcev1.BuildFailedCondition)
	}
	if chart || oci {
		if o.Verified != "" {
			fluxconditions.MarkTrue(obj, sourcev1.SourceVerifiedCondition, meta.SucceededReason, "%s", o.Verified)
		}
		if o.Unverifiable {
			fluxconditions.Delete(obj, sourcev1.SourceVerifiedCondition)
		}
	}
	if failed == nil {
		return nil
	}
	if failed.Type == sourcev1.SourceVerifiedCondition {
		fluxconditions.MarkFalse(obj, failed.Type, string(failed.Reason), "%s", failed.Message)
		return failed
	}
	switch failed.Type {
	case sourcev1.FetchFailedCondition:
		fluxconditions.Delete(obj, sourcev1.BuildFailedCondition)
	case sourcev1.BuildFailedCondition:
		fluxconditions.Delete(obj, sourcev1.FetchFailedCondition)
	}
	fluxconditions.MarkTrue(obj, failed.Type, string(failed.Reason), "%s", failed.Message)
	if failed.Unverified {
		fluxconditions.MarkFalse(obj, sourcev1.SourceVerifiedCondition, sourcev1.VerificationError, "%s", failed.Message)
	}
	return failed
}

func judgeArtifact(obj fluxObject, o status.Outcome) error {
	if o.Failure != nil {
		fluxconditions.MarkTrue(obj, o.Failure.Type, string(o.Failure.Reason), "%s", o.Failure.Message)
		return o.Failure
	}
	if !o.Reused {
		fluxconditions.Delete(obj, sourcev1.StorageOperationFailedCondition)
	}
	fluxconditions.Delete(obj, sourcev1.ArtifactOutdatedCondition)
	fluxconditions.MarkTrue(obj, sourcev1.ArtifactInStorageCondition, string(o.Stored.Reason), "%s", o.Stored.Message)
	return nil
}

// judgeResult simulates source-controller's result computation and summary.
func judgeResult(kind string, obj fluxObject, err error, observed int64) ([]metav1.Condition, int64) {
	var failure *status.Failure
	stalling := errors.As(err, &failure) && failure.Stalled != ""
	if err == nil {
		fluxconditions.Delete(obj, meta.ReconcilingCondition)
	}
	if fluxconditions.IsReconciling(obj) {
		reconciling := fluxconditions.Get(obj, meta.ReconcilingCondition)
		reconciling.Reason = meta.ProgressingWithRetryReason
		fluxconditions.Set(obj, reconciling)
	}
	if stalling {
		fluxconditions.MarkStalled(obj, string(failure.Stalled), "%s", failure.Message)
	} else {
		fluxconditions.Delete(obj, meta.StalledCondition)
	}
	if err == nil || stalling {
		observed = obj.GetGeneration()
	}

	summarize := []string{sourcev1.StorageOperationFailedCondition, sourcev1.FetchFailedCondition}
	negative := []string{sourcev1.StorageOperationFailedCondition, sourcev1.FetchFailedCondition}
	if kind == sourcev1.HelmChartKind {
		summarize = append(summarize, sourcev1.BuildFailedCondition)
		negative = append(negative, sourcev1.BuildFailedCondition)
	}
	summarize = append(summarize, sourcev1.ArtifactOutdatedCondition, sourcev1.ArtifactInStorageCondition)
	verified := kind == sourcev1.HelmChartKind || kind == sourcev1.OCIRepositoryKind
	if verified {
		summarize = append(summarize, sourcev1.SourceVerifiedCondition)
	}
	summarize = append(summarize, meta.StalledCondition, meta.ReconcilingCondition)
	negative = append(negative, sourcev1.ArtifactOutdatedCondition, meta.StalledCondition, meta.ReconcilingCondition)
	fluxconditions.SetSummary(obj, meta.ReadyCondition,
		fluxconditions.WithConditions(summarize...), fluxconditions.WithNegativePolarityConditions(negative...))
	if verified && fluxconditions.IsFalse(obj, sourcev1.SourceVerifiedCondition) {
		bipolar := fluxconditions.Get(obj, sourcev1.SourceVerifiedCondition)
		fluxconditions.MarkFalse(obj, meta.ReadyCondition, bipolar.Reason, "%s", bipolar.Message)
	}
	return obj.GetConditions(), observed
}

// TestFoldAgainstFlux compares Fold with Flux's condition code in every sensible combination of previous status and outcome:
// cases 64, 67 and 68, and the second runs of every kind.
func TestFoldAgainstFlux(t *testing.T) {
	n := 0
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			want, wantObserved := judge(s.kind, s.prev, s.outcome)
			got, gotObserved := status.Fold(s.kind, s.prev, s.outcome, now)
			if s.different != "" {
				if sameConditions(got, want) {
					t.Errorf("no difference, although %s", s.different)
				}
				return
			}
			n++
			if gotObserved != wantObserved {
				t.Errorf("observedGeneration %d, Flux says %d", gotObserved, wantObserved)
			}
			if !sameConditions(got, want) {
				t.Errorf("conditions\n%sFlux says\n%s", show(got), show(want))
			}
			checkTimes(t, s.prev, got, want)
		})
	}
	if n < 200 {
		t.Errorf("only %d scenarios were compared", n)
	}
}

// sameConditions compares everything except times.
func sameConditions(a, b []metav1.Condition) bool { return show(a) == show(b) }

// checkTimes checks the transition times: Fold keeps one wherever Flux does, and otherwise only if the condition has the same
// content as before and the artifact never disappeared.
func checkTimes(t *testing.T, prev status.Previous, got, flux []metav1.Condition) {
	t.Helper()
	for i, c := range got {
		kept := c.LastTransitionTime.Time.Equal(before)
		if !kept && !c.LastTransitionTime.Time.Equal(now) {
			t.Errorf("%s has the time %s, which is neither before nor now", c.Type, c.LastTransitionTime)
		}
		if !kept && flux[i].LastTransitionTime.Time.Equal(before) {
			t.Errorf("%s has a new time, in Flux the old one", c.Type)
		}
		if kept && !saidBefore(prev, c) {
			t.Errorf("%s has the old time but says something new", c.Type)
		}
		if kept && prev.Disappeared && c.Type == sourcev1.ArtifactInStorageCondition {
			t.Errorf("%s has the old time although the artifact disappeared", c.Type)
		}
	}
}

func saidBefore(prev status.Previous, c metav1.Condition) bool {
	for _, old := range prev.Conditions {
		if old.Type == c.Type {
			return old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message
		}
	}
	return false
}
