package oci

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/helmsrc/helmsrc/internal/fetch"
)

// Remote returns a chart's repository as a type of the client library, to copy its contents. A refusal is a *RegistryError.
func (o *Namespace) Remote(chart string) (*remote.Repository, error) {
	ref, err := o.repository(chart)
	if err != nil {
		return nil, err
	}
	return o.remote(ref), nil
}

// Remote is [Namespace.Remote] of the repository.
func (r *Repository) Remote() *remote.Repository { return r.remote(r.ref) }

func (o *endpoint) remote(ref registry.Reference) *remote.Repository {
	return &remote.Repository{
		Client: &copying{exchange{oci: o, ref: ref}}, Reference: ref, PlainHTTP: o.options.Insecure,
		ManifestMediaTypes: manifestTypes(), MaxMetadataBytes: maxMetadataBytes, SkipReferrersGC: true,
	}
}

// copying is the HTTP client of a copy. The library sends requests to learn whether a registry has a blob or supports an
// API, and has to see these answers; any other answer that is not a success is an error.
type copying struct{ exchange }

// Do implements the library's HTTP client.
func (c *copying) Do(r *http.Request) (*http.Response, error) { return c.again(r, c.send) }

func (c *copying) send(ctx context.Context, r *http.Request) (*http.Response, error) {
	// The answer is read after this returns: its context ends with the whole copy, or if no bytes arrive for too long.
	ctx, watch := watchProgress(context.WithoutCancel(ctx), c.oci.options.NoProgress)
	stop := context.AfterFunc(r.Context(), func() { watch.cancel(context.Cause(r.Context())) })
	end := func() { stop(); watch.stop() }
	out := r.Clone(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		out.Body = fetch.ReadCloser{Reader: watch.reader(r.Body), Closer: r.Body}
	}
	answer, err := c.follow(ctx, out)
	if err != nil {
		end()
		return nil, err
	}
	answer.Request = r
	if c.known(answer, r.URL) {
		answer.Body = fetch.ReadCloser{Reader: watch.reader(answer.Body), Closer: answer.Body, Closed: end}
		return answer, nil
	}
	defer end()
	return nil, c.registryError(ctx, answer, r.URL)
}

// known reports whether the library makes something of an answer.
func (c *copying) known(answer *http.Response, u *url.URL) bool {
	switch code := answer.StatusCode; {
	case code < http.StatusBadRequest:
		return true
	case strings.Contains(u.Path, "/referrers/"):
		return fetch.NoReferrers(code)
	default:
		return code == http.StatusNotFound && answer.Request.Method != http.MethodPut && answer.Request.Method != http.MethodPost
	}
}

// follow sends a request and, if it asks for something, follows redirects.
func (c *copying) follow(ctx context.Context, r *http.Request) (*http.Response, error) {
	send := func(ctx context.Context, at *url.URL) (*http.Response, error) { return c.roundTrip(ctx, r, at) }
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return send(ctx, r.URL)
	}
	answer, _, err := fetch.Follow(ctx, c.oci.origin, r.URL, send)
	return answer, err
}
