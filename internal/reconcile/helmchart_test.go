package reconcile

import (
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/status"
)

// §12 case 51: a kind of source that admission would have rejected.
func TestUnsupportedSource(t *testing.T) {
	t.Parallel()
	p := &chartReconciliation{reconciliation: &reconciliation{}}
	chart := &sourcev1.HelmChart{}
	chart.Spec.SourceRef.Kind, chart.Spec.SourceRef.Name = "Unsupported", "x"
	_, err := p.chartSource(t.Context(), chart)
	f := status.AsFailure(err)
	if f == nil || f.Reason != status.SourceUnavailable || f.Stalled != status.UnsupportedSourceKind {
		t.Fatalf("failure %+v", f)
	}
	want := "failed to get source: unsupported source kind 'Unsupported', must be one of: [HelmRepository GitRepository Bucket]"
	if f.Message != want {
		t.Errorf("message %q, want %q", f.Message, want)
	}
	for _, kind := range []string{"HelmRepository", "GitRepository", "Bucket"} {
		if !strings.Contains(f.Message, kind) || !Kinds().IsSource(kind) {
			t.Errorf("%s is no source", kind)
		}
	}
}
