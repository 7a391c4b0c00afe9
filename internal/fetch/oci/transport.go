package oci

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// Reading is a transport for others who read small things from this registry, such as signatures. It logs in as
// everything here does, tries again after transient failures, holds one of the places that the host has, and gives up
// where nothing happens for too long. It follows no redirect: a caller that does has to mark foreign requests.
func (o *endpoint) Reading() http.RoundTripper { return &readingTransport{exchange{oci: o}} }

// Reading is a transport to servers that belong to no repository, such as those that know of revoked certificates. It
// shows them no credentials, and is else as patient as that of [Namespace].
func (c *Client) Reading() http.RoundTripper {
	return &readingTransport{exchange{oci: &endpoint{
		client: c, options: Options{NoProgress: defaultNoProgress}, transport: auth.NewTransport(c.Connect(nil, nil)),
	}}}
}

type readingTransport struct{ exchange }

// RoundTrip implements http.RoundTripper.
func (t *readingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.again(r, t.try)
}

// try makes one attempt. The answer is read within it, as far as it is bounded: an answer that breaks off counts as a
// failure. One that exceeds the bound is cut off, one byte beyond it, for the reader to refuse.
func (t *readingTransport) try(ctx context.Context, r *http.Request) (*http.Response, error) {
	ctx, watch := watchProgress(ctx, t.oci.options.NoProgress)
	defer watch.stop()
	slot := t.oci.client.NewSlot()
	if err := slot.Move(ctx, r.URL); err != nil {
		return nil, fetch.NewRequestError(ctx, fetch.ShownURL(r.URL), err)
	}
	defer slot.Free()
	answer, err := t.roundTrip(fetch.WithSlot(ctx, slot), r, r.URL)
	if err != nil {
		return nil, err
	}
	if finding.TransientStatus(answer.StatusCode) {
		return nil, fetch.NewStatusError(answer, fetch.ShownURL(r.URL), fetch.Snippet(answer), t.scrubber(r.URL), t.oci.client.Config.Now())
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(watch.reader(answer.Body), maxMetadataBytes+1))
	if err != nil {
		return nil, fetch.NewBodyError(ctx, fetch.ShownURL(r.URL), err)
	}
	answer.Body = io.NopCloser(bytes.NewReader(content))
	return answer, nil
}
