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

// Reading returns a transport for other packages that read small things from this registry, such as signatures. It logs
// in like all requests here, retries after transient failures, holds one of the places that the host has, and gives up
// if nothing happens for too long. It follows no redirect: a caller that does has to mark foreign requests.
func (o *endpoint) Reading() http.RoundTripper { return &readingTransport{exchange{oci: o}} }

// Reading returns a transport to servers that belong to no repository, such as those that list revoked certificates. It
// sends them no credentials, and else is as patient as the transport of [Namespace].
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

// try makes one attempt. It reads the answer up to the bound: an answer that breaks off counts as a failure. An answer
// over the bound is cut off, one byte beyond it, and the reader refuses it.
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
		return nil, fetch.NewStatusError(answer, fetch.ShownURL(r.URL), t.scrubber(r.URL), t.oci.client.Config.Now())
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(watch.reader(answer.Body), maxMetadataBytes+1))
	if err != nil {
		return nil, fetch.NewBodyError(ctx, fetch.ShownURL(r.URL), err)
	}
	answer.Body = io.NopCloser(bytes.NewReader(content))
	return answer, nil
}
