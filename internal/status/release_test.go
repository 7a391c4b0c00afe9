package status_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	fluxconditions "github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/helmsrc/helmsrc/internal/status"
)

// judgeRelease simulates helm-controller's reconciler, with Flux's own condition code.
func judgeRelease(prev status.Previous, o status.Outcome) ([]metav1.Condition, int64) {
	hr := &helmv2.HelmRelease{}
	hr.SetGeneration(o.Generation)
	hr.SetConditions(append([]metav1.Condition(nil), prev.Conditions...))
	observed := prev.ObservedGeneration
	if observed == 0 {
		observed = -1
	}
	fluxconditions.MarkReconciling(hr, meta.ProgressingReason, "Fulfilling prerequisites")
	switch f := o.Failure; {
	case f == nil:
		fluxconditions.MarkUnknown(hr, meta.ReadyCondition, meta.ProgressingReason, "Fulfilling prerequisites")
	case f.Stalled != "":
		fluxconditions.MarkStalled(hr, string(f.Stalled), "%s", f.Message)
		fluxconditions.MarkFalse(hr, meta.ReadyCondition, string(f.Reason), "%s", f.Message)
		observed = o.Generation
	default:
		fluxconditions.MarkFalse(hr, meta.ReadyCondition, string(f.Reason), "%s", f.Message)
	}
	return hr.GetConditions(), observed
}

func TestFoldReleaseAgainstFlux(t *testing.T) {
	boom := errors.New("boom")
	outcomes := map[string]struct {
		failure error
		kstatus kstatus.Status
	}{
		"fulfilled":  {nil, kstatus.InProgressStatus},
		"denied":     {status.AccessDenied.Stall(boom), kstatus.FailedStatus},
		"artifact":   {status.ArtifactFailed.Wrap(boom), kstatus.InProgressStatus},
		"source":     {status.SourceNotReady.Wrap(boom), kstatus.InProgressStatus},
		"values":     {status.ValuesError.Wrap(boom), kstatus.InProgressStatus},
		"mutate":     {status.ChartMutateError.Wrap(boom), kstatus.InProgressStatus},
		"unexpected": {boom, kstatus.InProgressStatus},
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for firstName, first := range outcomes {
		for secondName, second := range outcomes {
			t.Run(firstName+"/"+secondName, func(t *testing.T) {
				o := status.Outcome{Generation: 2, Failure: status.AsFailure(first.failure)}
				conditions, observed := status.FoldRelease(status.Previous{}, o, now)
				fluxFirst, fluxObserved := judgeRelease(status.Previous{}, o)
				if show(conditions) != show(fluxFirst) || observed != fluxObserved {
					t.Fatalf("%d %s\nFlux %d %s", observed, show(conditions), fluxObserved, show(fluxFirst))
				}
				prev := status.Previous{Conditions: conditions, ObservedGeneration: observed}
				o.Failure = status.AsFailure(second.failure)
				conditions, observed = status.FoldRelease(prev, o, now.Add(time.Hour))
				fluxSecond, fluxObserved := judgeRelease(prev, o)
				if show(conditions) != show(fluxSecond) || observed != fluxObserved {
					t.Errorf("then %d %s\nFlux %d %s", observed, show(conditions), fluxObserved, show(fluxSecond))
				}
				checkKstatus(t, fmt.Sprint(firstName, " then ", secondName), 2, conditions, observed, second.kstatus)
			})
		}
	}
}

func TestReleaseEvents(t *testing.T) {
	boom := errors.New("boom")
	tests := []struct {
		reason status.Reason
		events int
	}{
		{status.AccessDenied, 1}, {status.ArtifactFailed, 1}, {status.ValuesError, 1}, {status.ChartMutateError, 0}, {status.SourceNotReady, 0},
	}
	for _, tt := range tests {
		f := status.AsFailure(tt.reason.Wrap(boom))
		got := status.ReleaseEvents(status.Outcome{Generation: 1, Failure: f})
		if len(got) != tt.events || len(got) == 1 && (!got[0].Warning || got[0].Reason != tt.reason || got[0].Message != "boom") {
			t.Errorf("%s: %v", tt.reason, got)
		}
		f.Requeue = true
		if got := status.ReleaseEvents(status.Outcome{Generation: 1, Failure: f}); len(got) > 0 {
			t.Errorf("%s, requeued: %v", tt.reason, got)
		}
	}
	if got := status.ReleaseEvents(status.Outcome{Generation: 1}); len(got) > 0 {
		t.Errorf("%v", got)
	}
}
