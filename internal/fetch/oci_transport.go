package fetch

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// Reading is a transport for others who read small things from this registry, such as signatures. It logs in as
// everything here does, tries again after transient failures, holds one of the places that the host has, and gives up
// where nothing happens for too long. It follows no redirect: whoever does has to mark what is foreign.
func (o *OCI) Reading() http.RoundTripper { return readingTransport{o} }

type readingTransport struct{ oci *OCI }

// RoundTrip implements http.RoundTripper. The request must not have a body.
func (t readingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	var answer *http.Response
	err := t.oci.client.retry(r.Context(), func(ctx context.Context, _ int) (err error) {
		answer, err = t.try(ctx, r) //nolint:bodyclose // the caller closes it
		return err
	})
	return answer, err
}

// try makes one attempt. The answer is read within it, as far as it is bounded: an answer that breaks off counts as a
// failure. One that exceeds the bound is cut off, one byte beyond it, for the reader to refuse.
func (t readingTransport) try(ctx context.Context, r *http.Request) (*http.Response, error) {
	x := &ociExchange{oci: t.oci, slot: &slot{limit: t.oci.client.limit}}
	ctx, watch := watchProgress(ctx, t.oci.options.NoProgress)
	defer watch.stop()
	if err := x.slot.move(ctx, r.URL); err != nil {
		return nil, newRequestError(ctx, shownURL(r.URL), err)
	}
	defer x.slot.free()
	answer, err := t.oci.transport.RoundTrip(r.Clone(ctx))
	if err != nil {
		return nil, x.requestError(ctx, r.URL, r.URL, err)
	}
	if transientStatus(answer.StatusCode) {
		return nil, newStatusError(answer, shownURL(r.URL), snippet(answer), x.scrubber(r.URL), t.oci.client.config.Now())
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(watch.reader(answer.Body), maxMetadataBytes+1))
	if err != nil {
		return nil, &bodyError{newRequestError(ctx, shownURL(r.URL), err)}
	}
	answer.Body = io.NopCloser(bytes.NewReader(content))
	return answer, nil
}
