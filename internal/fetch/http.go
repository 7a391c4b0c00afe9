package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
)

// HTTPOptions are the settings of one HelmRepository.
type HTTPOptions struct {
	PassCredentials bool
	Timeout         time.Duration // spec.timeout: of one index or one archive, with its retries; 0 is none
	Digests         DigestPolicy
}

// HTTP is a Helm repository on an HTTP server. It is safe for use by many goroutines.
type HTTP struct {
	client    *Client
	base      *url.URL // normalised, without user and password
	identity  *auth.Identity
	options   HTTPOptions
	transport http.RoundTripper
}

// HTTP opens the repository at a URL, without asking its server anything. User and password in the URL are the
// identity's, if it has none. An error is a *url.Error or a *SchemeError.
func (c *Client) HTTP(base string, id *auth.Identity, o HTTPOptions) (*HTTP, error) {
	normal, err := NormalizeURL(base)
	if err != nil {
		return nil, err
	}
	u, err := auth.ParseURL(normal)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, &SchemeError{u.Scheme}
	}
	if u.Hostname() == "" {
		return nil, auth.RedactURLError(&url.Error{Op: "parse", URL: base, Err: errNoHost})
	}
	id = id.WithUserinfo(u.User)
	u.User = nil
	return &HTTP{client: c, base: u, identity: id, options: o, transport: c.transport(id, u, o.PassCredentials)}, nil
}

// operation runs attempt with retries within the repository's timeout, in one slot.
func (h *HTTP) operation(ctx context.Context, first *url.URL, attempt func(context.Context, *exchange) error) error {
	s := &slot{limit: h.client.limit}
	defer s.free()
	// Waiting for this process's own transfers does not count: a chart would else time out for being one of many.
	if err := s.move(ctx, first); err != nil {
		return newRequestError(ctx, first.String(), err)
	}
	if h.options.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, h.options.Timeout,
			&TimeoutError{Name: "spec.timeout", After: h.options.Timeout})
		defer cancel()
	}
	return h.client.retry(ctx, func(ctx context.Context, n int) error {
		return attempt(ctx, &exchange{repo: h, slot: s, attempt: n})
	})
}

// An exchange is one attempt to get one file.
type exchange struct {
	repo    *HTTP
	slot    *slot
	attempt int
	ahead   bool // transfer while what has come is consumed
	known   Tag  // of what the caller has already
	tag     Tag  // of the answer
}

const maxRedirects = 10

// get requests u and follows redirects. The answer's status is 200, and its body has to be closed.
func (x *exchange) get(ctx context.Context, u *url.URL) (*http.Response, error) {
	seen := map[string]bool{}
	for at := u; ; {
		seen[at.String()] = true
		first := len(seen) == 1
		answer, err := x.send(ctx, at, first)
		if err != nil {
			return nil, err
		}
		if answer.StatusCode == http.StatusOK {
			if first {
				x.tag = tagOf(answer)
			}
			return answer, nil
		}
		words := snippet(answer)
		if answer.StatusCode == http.StatusNotModified && first && x.known != "" {
			return nil, ErrNotModified
		}
		next, err := redirect(answer, at)
		switch {
		case next == nil && err == nil:
			return nil, x.statusError(answer, words, u, at)
		case err != nil:
			return nil, err
		case len(seen) > maxRedirects:
			return nil, newRequestError(ctx, u.String(), fmt.Errorf("stopped after %d redirects", maxRedirects))
		case seen[next.String()]:
			return nil, newRequestError(ctx, u.String(), fmt.Errorf("redirect loop: back to %s", auth.RedactURL(next.String())))
		}
		if !sameSite(u, next) {
			ctx = auth.Foreign(ctx)
		}
		at = next
	}
}

// A Tag is the name that a server gives to the version of a file, a strong entity tag of HTTP: two files with the same
// have the same bytes. It is empty if the server gives none, or another server answered in its stead.
type Tag string

// maxTag bounds a tag, in bytes.
const maxTag = 1 << 10

// ErrNotModified says that the file has the tag that the caller knows already.
var ErrNotModified = errors.New("not modified")

func tagOf(answer *http.Response) Tag {
	tag := answer.Header.Get("ETag")
	if len(tag) < 3 || len(tag) > maxTag || tag[0] != '"' || tag[len(tag)-1] != '"' {
		return ""
	}
	if strings.ContainsFunc(tag, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return ""
	}
	return Tag(tag)
}

// send makes one request. Only the first one asks for what is new: a tag means nothing to a server that one is redirected
// to.
func (x *exchange) send(ctx context.Context, u *url.URL, first bool) (*http.Response, error) {
	if err := x.slot.move(ctx, u); err != nil {
		return nil, newRequestError(ctx, u.String(), err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, auth.RedactURLError(err)
	}
	if first && x.known != "" {
		r.Header.Set("If-None-Match", string(x.known))
	}
	answer, err := x.repo.transport.RoundTrip(r)
	if err != nil {
		return nil, x.requestError(ctx, u, err)
	}
	return answer, nil
}

// redirect returns where the answer sends its reader, or nil if it is no redirect.
func redirect(answer *http.Response, from *url.URL) (*url.URL, error) {
	location := answer.Header.Get("Location")
	switch answer.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	if location == "" {
		return nil, nil
	}
	refuse := func(err error) error { return &RequestError{URL: auth.RedactURL(from.String()), Err: err} }
	to, err := from.Parse(location)
	switch {
	case err != nil:
		return nil, refuse(fmt.Errorf("redirected to an invalid URL: %w", auth.RedactURLError(err)))
	case from.Scheme == "https" && to.Scheme == "http":
		return nil, refuse(fmt.Errorf("redirect from https to http refused: %s", auth.RedactURL(to.String())))
	case to.Scheme != "http" && to.Scheme != "https":
		return nil, refuse(fmt.Errorf("redirect refused: %w", &SchemeError{to.Scheme}))
	case to.Hostname() == "":
		return nil, refuse(errors.New("redirected to a URL without a host"))
	}
	return to, nil
}

// sameSite tells whether credentials that were meant for one URL may follow a redirect to another one, as net/http
// judges: the same host on any port, or a host below it. It matters only with passCredentials. A server that redirects
// to a blob store signs the URL, and blob stores refuse signed requests that carry credentials as well.
func sameSite(from, to *url.URL) bool {
	a, b := strings.ToLower(from.Hostname()), strings.ToLower(to.Hostname())
	return a == b || !strings.ContainsAny(b, ":%") && strings.HasSuffix(b, "."+a)
}

// maxSnippetBytes is how much is read of an answer that is not wanted, for its words and so that its connection can be
// used again.
const maxSnippetBytes = 2 << 10

// maxSnippetWait is how long a server may take for it.
const maxSnippetWait = 2 * time.Second

// snippet reads the beginning of an answer and closes it.
func snippet(answer *http.Response) []byte {
	defer func() { _ = answer.Body.Close() }()
	// Closing the body ends a read that waits.
	stop := time.AfterFunc(maxSnippetWait, func() { _ = answer.Body.Close() })
	defer stop.Stop()
	words, _ := io.ReadAll(io.LimitReader(answer.Body, maxSnippetBytes))
	return words
}

// statusError describes an answer to a request for u that came, after redirects, from the URL at.
func (x *exchange) statusError(answer *http.Response, words []byte, u, at *url.URL) error {
	e := newStatusError(answer, u.String(), words, x.scrubber(u, at), x.repo.client.config.Now())
	e.hint = x.repo.statusHint(e, u, at)
	return e
}

func (x *exchange) requestError(ctx context.Context, u *url.URL, err error) error {
	e := newRequestError(ctx, u.String(), err)
	e.text = oneLine(x.scrubber(u)(e.Err.Error()), maxErrorText)
	e.hint = x.repo.requestHint(e.Err)
	return e
}

// scrubber removes what is secret from the words of a server that was asked for these URLs.
func (x *exchange) scrubber(urls ...*url.URL) func(string) string {
	return func(text string) string {
		text = x.repo.identity.Scrub(text)
		for _, u := range urls {
			text = auth.ScrubURL(text, u)
		}
		return text
	}
}
