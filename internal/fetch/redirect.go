package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/helmsrc/helmsrc/internal/auth"
)

const MaxRedirects = 10

// Redirect returns where the answer sends its reader, or nil if it is no Redirect.
func Redirect(answer *http.Response, from *url.URL) (*url.URL, error) {
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
	refuse := func(err error) error { return NewRequestError(context.Background(), from.String(), err) }
	to, err := from.Parse(location)
	switch {
	case err != nil:
		return nil, refuse(fmt.Errorf("redirected to an invalid URL: %w", auth.RedactURLError(err)))
	case from.Scheme == "https" && to.Scheme == "http":
		return nil, refuse(fmt.Errorf("redirect from https to http refused: %s", auth.RedactURL(to.String())))
	case to.Scheme != "http" && to.Scheme != "https":
		return nil, refuse(fmt.Errorf("redirect refused: %w", UnsupportedScheme(to.Scheme)))
	case to.Hostname() == "":
		return nil, refuse(errors.New("redirected to a URL without a host"))
	}
	return to, nil
}

// ShownURL is a URL for messages: without a login, and without a query, which often contains a token.
func ShownURL(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

// Follow sends a request, follows redirects, and returns the first other answer with its URL. From the first redirect to another
// host than the origin on, the context is [auth.Foreign]; without an origin, send decides about that.
func Follow(ctx context.Context, origin, from *url.URL, send func(context.Context, *url.URL) (*http.Response, error)) (*http.Response, *url.URL, error) {
	at, seen := from, map[string]bool{}
	for {
		seen[at.String()] = true
		answer, err := send(ctx, at)
		if err != nil {
			return nil, nil, err
		}
		next, err := Redirect(answer, at)
		if next == nil && err == nil {
			return answer, at, nil
		}
		_ = Snippet(answer)
		switch {
		case err != nil:
			return nil, nil, err
		case len(seen) > MaxRedirects:
			return nil, nil, NewRequestError(ctx, ShownURL(from), fmt.Errorf("stopped after %d redirects", MaxRedirects))
		case seen[next.String()]:
			return nil, nil, NewRequestError(ctx, ShownURL(from), fmt.Errorf("redirect loop: back to %s", ShownURL(next)))
		case origin != nil && !auth.SameOrigin(next, origin):
			ctx = auth.Foreign(ctx)
		}
		at = next
	}
}

// SameSite reports whether credentials that were meant for one URL may follow a redirect to another one, as net/http
// judges: the same host on any port, or a host below it. It matters only with passCredentials. A server that redirects
// to a blob store signs the URL, and blob stores refuse signed requests that carry credentials as well.
func SameSite(from, to *url.URL) bool {
	a, b := strings.ToLower(from.Hostname()), strings.ToLower(to.Hostname())
	return a == b || !strings.ContainsAny(b, ":%") && strings.HasSuffix(b, "."+a)
}
