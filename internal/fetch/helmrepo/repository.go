// Package helmrepo talks to Helm repositories on HTTP servers, and to local directories in their place. It downloads indexes,
// archives and provenance files; it does not choose among versions.
package helmrepo

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// Options holds the settings of one HelmRepository.
type Options struct {
	PassCredentials bool
	Timeout         time.Duration // spec.timeout: of one index or one archive, with its retries; 0 for no limit
	Digests         fetch.DigestPolicy
	Useless         string // the fault of a Secret without a login, "" if it has a login or there is no Secret
}

// Repository is a Helm repository on an HTTP server. It is safe for concurrent use.
type Repository struct {
	client    *fetch.Client
	base      *url.URL // normalised, without user and password
	identity  *auth.Identity
	options   Options
	transport http.RoundTripper
}

// Open opens the repository at a URL, without sending a request. User and password in the URL are the identity's, if it
// has no basic credentials. The errors are about the URL, without its secrets.
func Open(c *fetch.Client, base string, id *auth.Identity, o Options) (*Repository, error) {
	normal, err := fetch.NormalizeURL(base)
	if err != nil {
		return nil, err
	}
	u, err := auth.ParseURL(normal)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fetch.UnsupportedScheme(u.Scheme)
	}
	if u.Hostname() == "" {
		return nil, auth.RedactURLError(&url.Error{Op: "parse", URL: base, Err: fetch.ErrNoHost})
	}
	id = id.WithUserinfo(u.User)
	u.User = nil
	return &Repository{client: c, base: u, identity: id, options: o, transport: c.Transport(id, u, o.PassCredentials)}, nil
}

// operation runs attempt with retries within the repository's timeout, in one slot.
func (h *Repository) operation(ctx context.Context, first *url.URL, attempt func(context.Context, *exchange) error) error {
	s := h.client.NewSlot()
	defer s.Free()
	// Waiting for this process's own transfers does not count: a chart would else time out for being one of many.
	if err := s.Move(ctx, first); err != nil {
		return fetch.NewRequestError(ctx, first.String(), err)
	}
	ctx, cancel := fetch.Within(ctx, h.options.Timeout)
	defer cancel()
	return h.client.Retry(ctx, func(ctx context.Context) error {
		return attempt(ctx, &exchange{repo: h, slot: s})
	})
}

// An exchange is one attempt to fetch one file.
type exchange struct {
	repo  *Repository
	slot  *fetch.Slot
	known Tag // of the file that the caller has already
	tag   Tag // of the answer
}

// get requests u and follows redirects. The answer's status is 200, and its body has to be closed. If the file still has the
// known tag, the error is ErrNotModified.
func (x *exchange) get(ctx context.Context, u *url.URL) (*http.Response, error) {
	foreign := false
	answer, at, err := fetch.Follow(ctx, nil, u, func(ctx context.Context, at *url.URL) (*http.Response, error) {
		if foreign = foreign || !fetch.SameSite(u, at); foreign {
			ctx = auth.Foreign(ctx)
		}
		return x.send(ctx, at, at == u)
	})
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode == http.StatusOK:
		if at == u {
			x.tag = tagOf(answer)
		}
		return answer, nil
	case answer.StatusCode == http.StatusNotModified && at == u && x.known != "":
		_ = fetch.Snippet(answer)
		return nil, ErrNotModified
	}
	return nil, x.statusError(answer, u, at)
}

// A Tag is the name that a server gives to the version of a file: an entity tag of HTTP, strong or weak, or the time of the
// last change behind the word modified. A file that is kept under a tag is compared with its recorded digest, so that a
// weak tag suffices. It is empty if the server sends no tag, or redirects the request.
type Tag string

// tagModified is the prefix of a tag that is a time.
const tagModified = "modified "

// maxTag is the limit, in bytes, of a tag.
const maxTag = 1 << 10

// ErrNotModified reports that the file still has the tag that the caller passed.
var ErrNotModified = errors.New("not modified")

func tagOf(answer *http.Response) Tag {
	tag := answer.Header.Get("ETag")
	strong := strings.TrimPrefix(tag, "W/")
	if len(strong) < 3 || len(tag) > maxTag || strong[0] != '"' || strong[len(strong)-1] != '"' {
		return modifiedTag(answer.Header)
	}
	if strings.ContainsFunc(tag, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return modifiedTag(answer.Header)
	}
	return Tag(tag)
}

// modifiedTag is the time of the last change, if the answer came long enough after it: a file can change more than once in
// the second that a time names.
func modifiedTag(h http.Header) Tag {
	modified, err := http.ParseTime(h.Get("Last-Modified"))
	if err != nil {
		return ""
	}
	sent, err := http.ParseTime(h.Get("Date"))
	if err != nil || sent.Sub(modified) < time.Minute {
		return ""
	}
	return Tag(tagModified + modified.UTC().Format(http.TimeFormat))
}

// ask makes a request conditional: it is for another version than the tag's.
func (t Tag) ask(r *http.Request) {
	if modified, ok := strings.CutPrefix(string(t), tagModified); ok {
		r.Header.Set("If-Modified-Since", modified)
	} else if t != "" {
		r.Header.Set("If-None-Match", string(t))
	}
}

// send sends one request. Only the first one is conditional: a tag has no meaning for the target of a redirect.
func (x *exchange) send(ctx context.Context, u *url.URL, first bool) (*http.Response, error) {
	if err := x.slot.Move(ctx, u); err != nil {
		return nil, fetch.NewRequestError(ctx, u.String(), err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, auth.RedactURLError(err)
	}
	if first {
		x.known.ask(r)
	}
	answer, err := x.repo.transport.RoundTrip(r)
	if err != nil {
		return nil, x.requestError(ctx, u, err)
	}
	return answer, nil
}

// statusError describes an answer to a request for u that came, after redirects, from the URL at.
func (x *exchange) statusError(answer *http.Response, u, at *url.URL) error {
	e := fetch.NewStatusError(answer, u.String(), x.scrubber(u, at), x.repo.client.Config.Now())
	e.Advice = x.repo.statusHint(e, u, at)
	return e
}

func (x *exchange) requestError(ctx context.Context, u *url.URL, err error) error {
	return fetch.DescribeRequest(ctx, u.String(), err, func(err error) (text, advice string) {
		return finding.OneLine(x.scrubber(u)(err.Error()), fetch.MaxErrorText), x.repo.requestHint(err)
	})
}

// scrubber returns a function that removes secrets from the answers of a server to requests for these URLs.
func (x *exchange) scrubber(urls ...*url.URL) func(string) string {
	return func(text string) string {
		text = x.repo.identity.Scrub(text)
		for _, u := range urls {
			text = auth.ScrubURL(text, u)
		}
		return text
	}
}
