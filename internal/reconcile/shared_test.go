package reconcile

import (
	"context"
	"errors"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/fetch"
)

// TestShareGivenUp has the first of two objects give up a download, as a prefetch does that nobody needs. That is no
// failure of the archive: the second one gets it.
func TestShareGivenUp(t *testing.T) {
	chart := &sourcev1.HelmChart{}
	p := &pass{r: &Reconciler{requests: map[string]int{request(chart): 2}}, typed: chart}
	t.Cleanup(func() {
		if err := p.r.closers.close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	first := &pick{id: "it", fetch: func(context.Context, fetch.Sink, int64) error {
		cancel()
		return context.Canceled
	}}
	second := &pick{id: "it", fetch: func(_ context.Context, dst fetch.Sink, _ int64) error {
		_, err := dst.Write([]byte("archive"))
		return err
	}}
	p.share(first)
	p.share(second)
	var got memory
	if err := first.fetch(ctx, &got, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("the first: %v, want that it was given up", err)
	}
	if err := second.fetch(t.Context(), &got, 10); err != nil || got.String() != "archive" {
		t.Errorf("the second: %q, %v", got.String(), err)
	}
}

// TestRequests counts objects that ask for the same, wherever they are.
func TestRequests(t *testing.T) {
	tests := []struct {
		a, b any
		same bool
	}{
		{chartOfVersion("1.0.0"), chartOfVersion("1.0.0"), true},
		{chartOfVersion("1.0.0"), chartOfVersion("1.0.1"), false},
		{artifactOf("a", "1"), artifactOf("a", "1"), true},
		{artifactOf("a", "1"), artifactOf("a", "2"), false},
		{artifactOf("a", "1"), artifactOf("b", "1"), false},
	}
	for _, tt := range tests {
		if a, b := request(tt.a), request(tt.b); a == "" || (a == b) != tt.same {
			t.Errorf("%s and %s", a, b)
		}
	}
	if got := request(&sourcev1.GitRepository{}); got != "" {
		t.Errorf("a GitRepository asks for %s", got)
	}
}

func chartOfVersion(version string) *sourcev1.HelmChart {
	return &sourcev1.HelmChart{Spec: sourcev1.HelmChartSpec{Chart: "podinfo", Version: version}}
}

func artifactOf(url, tag string) *sourcev1.OCIRepository {
	return &sourcev1.OCIRepository{Spec: sourcev1.OCIRepositorySpec{URL: url, Reference: &sourcev1.OCIRepositoryRef{Tag: tag}}}
}
