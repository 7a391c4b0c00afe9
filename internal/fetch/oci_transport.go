package fetch

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
)

// Reading is a transport for others who read small things from this registry, such as signatures. It logs in as
// everything here does, tries again after transient failures, holds one of the places that the host has, and gives up
// where nothing happens for too long. It follows no redirect: whoever does has to mark what is foreign.
func (o *OCI) Reading() http.RoundTripper {
	x := &ociExchange{oci: o}
	return &readingTransport{
		client: o.client, next: o.transport, noProgress: o.options.NoProgress, scrubber: x.scrubber,
		failure: func(ctx context.Context, u *url.URL, err error) error { return x.requestError(ctx, u, u, err) },
	}
}

// Reading is a transport to servers that belong to no repository, such as those that know of revoked certificates. It
// shows them no credentials, and is else as patient as that of [OCI.Reading].
func (c *Client) Reading() http.RoundTripper {
	return &readingTransport{
		client:     c,
		noProgress: DefaultNoProgress,
		next: auth.NewTransport(auth.TransportOptions{
			Dial: c.config.Dial, Getenv: c.config.Getenv, UserAgent: c.config.UserAgent,
		}),
		scrubber: func(u *url.URL) func(string) string {
			return func(text string) string { return auth.ScrubURL(text, u) }
		},
		failure: func(ctx context.Context, u *url.URL, err error) error { return newRequestError(ctx, shownURL(u), err) },
	}
}

type readingTransport struct {
	client     *Client
	next       http.RoundTripper
	noProgress time.Duration
	scrubber   func(*url.URL) func(string) string
	failure    func(context.Context, *url.URL, error) error
}

// RoundTrip implements http.RoundTripper.
func (t *readingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody { // it could be sent once only
		return t.try(r.Context(), r)
	}
	var answer *http.Response
	err := t.client.retry(r.Context(), func(ctx context.Context, _ int) (err error) {
		answer, err = t.try(ctx, r) //nolint:bodyclose // the caller closes it
		return err
	})
	return answer, err
}

// try makes one attempt. The answer is read within it, as far as it is bounded: an answer that breaks off counts as a
// failure. One that exceeds the bound is cut off, one byte beyond it, for the reader to refuse.
func (t *readingTransport) try(ctx context.Context, r *http.Request) (*http.Response, error) {
	ctx, watch := watchProgress(ctx, t.noProgress)
	defer watch.stop()
	slot := &slot{limit: t.client.limit}
	if err := slot.move(ctx, r.URL); err != nil {
		return nil, newRequestError(ctx, shownURL(r.URL), err)
	}
	defer slot.free()
	answer, err := t.next.RoundTrip(r.Clone(ctx))
	if err != nil {
		return nil, t.failure(ctx, r.URL, err)
	}
	if transientStatus(answer.StatusCode) {
		return nil, newStatusError(answer, shownURL(r.URL), snippet(answer), t.scrubber(r.URL), t.client.config.Now())
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(watch.reader(answer.Body), maxMetadataBytes+1))
	if err != nil {
		return nil, &bodyError{newRequestError(ctx, shownURL(r.URL), err)}
	}
	answer.Body = io.NopCloser(bytes.NewReader(content))
	return answer, nil
}
