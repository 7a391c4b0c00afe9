package reconcile

import (
	"context"
	"errors"
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/fetch"
)

// download is an archive that several objects of the run ask for. It stays until
// the run ends.
type download struct {
	*spool
	warnings []error
}

// request is equal for two objects that most likely ask for the same archive, and
// empty for those that ask for none.
func request(typed any) string {
	switch obj := typed.(type) {
	case *sourcev1.HelmChart:
		return fmt.Sprintf("chart %q %q", obj.Spec.Chart, obj.Spec.Version)
	case *sourcev1.OCIRepository:
		return fmt.Sprintf("artifact %q %q", obj.Spec.URL, ociRef(obj))
	}
	return ""
}

// requests counts how often each archive is asked for.
func requests(objects []*admission.Admitted) map[string]int {
	counts := map[string]int{}
	for _, adm := range objects {
		counts[request(adm.Typed)]++
	}
	delete(counts, "")
	return counts
}

// share has an archive downloaded once if the object is not the only one that asks
// for it. What only one asks for goes straight to its place.
func (p *pass) share(chosen *pick) {
	if chosen.local || chosen.shared || p.r.requests[request(p.typed)] < 2 {
		return
	}
	chosen.shared = true
	own := chosen.fetch
	chosen.fetch = func(ctx context.Context, dst fetch.Sink, limit int64) error {
		got, err := p.r.downloads.do(ctx, chosen.id, func() (*download, error) { return p.r.spoolOnce(ctx, own, limit) })
		switch {
		case errors.Is(err, context.Canceled) && ctx.Err() == nil:
			// Whoever was at it had no use for it any more.
			return own(ctx, dst, limit)
		case err != nil:
			return err
		}
		for _, warning := range got.warnings {
			fetch.Warn(ctx, warning)
		}
		return got.copyTo(ctx, dst, limit)
	}
}

// spoolOnce downloads into a file of its own. That this machine has no room for it
// is told from what the server says.
func (r *Reconciler) spoolOnce(ctx context.Context, get func(context.Context, fetch.Sink, int64) error, limit int64) (*download, error) {
	spool, err := r.newSpool()
	if err != nil {
		return nil, &sinkError{err}
	}
	got := &download{spool: spool}
	sink := &watchedSink{Sink: spool}
	err = get(fetch.WithWarnings(ctx, func(warning error) { got.warnings = append(got.warnings, warning) }), sink, limit)
	if sink.err != nil {
		return nil, &sinkError{sink.err}
	}
	return got, err
}
