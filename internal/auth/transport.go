package auth

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The timeouts are source-controller's. They bound steps that have no other bound; the whole is bounded by contexts.
const (
	dialTimeout         = 30 * time.Second
	tlsHandshakeTimeout = 10 * time.Second
	idleTimeout         = 60 * time.Second
)

// maxHeaderBytes is the limit of an answer's header: far more than servers send, and far below net/http's 10 MiB.
const maxHeaderBytes = 256 << 10

// maxIdlePerHost is the number of concurrent requests to one host.
const maxIdlePerHost = 4

// TransportOptions sets where an identity may be sent and how connections are made.
type TransportOptions struct {
	Identity *Identity
	// Base is the repository's URL: only requests to its scheme, host and port carry the identity. User and password
	// in it count as basic credentials, if the identity has none. With a nil Base, the identity is sent to no server.
	Base *url.URL
	// PassCredentials lets it go to other hosts too, but not from https to http.
	PassCredentials bool

	Dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	Getenv func(string) string // for the proxy variables; nil is no proxy
	Proxy  *Proxy              // of a manifest, in place of the environment's
	// AllowPrivate lets a public host with a login of the environment lead to private addresses.
	AllowPrivate bool
	UserAgent    string
}

// NewTransport returns a transport whose connections are never shared with another identity. It removes the
// Authorization, Cookie and Referer headers of a request, and sets Basic where the options allow it. User and password
// in a request's own URL are used for that request, if the identity is not.
//
// It compresses nothing and follows no redirect.
func NewTransport(o TransportOptions) http.RoundTripper {
	return &transport{connect(o, o.Base != nil && o.Identity.IsAmbient()), o}
}

// connections holds the pool for a server and the pool for the other hosts that it redirects to.
type connections struct {
	guard *realmGuard
	// own carries the client certificate, foreign does not.
	own, foreign *Pool
}

// connect returns the connections to the server at Base. If it is guarded, it must not lead to the inside.
func connect(o TransportOptions, guarded bool) connections {
	guard := &realmGuard{registry: o.Base, guarded: guarded && !o.AllowPrivate}
	own, foreign := o, o
	foreign.Identity = o.Identity.WithoutCertificate()
	own.Dial, foreign.Dial = guard.registryDial(orPlain(o.Dial)), guard.foreignDial(orPlain(o.Dial))
	return connections{guard, Connections(own), Connections(foreign)}
}

// CloseIdleConnections implements the method that http.Client's method of this name calls.
func (c connections) CloseIdleConnections() {
	c.own.CloseIdleConnections()
	c.foreign.CloseIdleConnections()
}

type transport struct {
	connections
	options TransportOptions
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	out, trusted := outgoing(r, t.options.UserAgent), t.trusts(r)
	var id *Identity
	if trusted {
		id = t.options.Identity.WithUserinfo(t.options.Base.User)
	}
	if username, password, ok := id.WithUserinfo(r.URL.User).basic(); ok {
		out.SetBasicAuth(username, password)
	}
	if trusted {
		return t.own.RoundTrip(out)
	}
	return t.guard.foreign(out, t.foreign)
}

// outgoing returns a copy of a request without the headers and the URL's login that identify its sender.
func outgoing(r *http.Request, userAgent string) *http.Request {
	out := r.Clone(r.Context())
	for _, header := range []string{"Authorization", "Cookie", "Referer"} {
		out.Header.Del(header)
	}
	if userAgent != "" {
		out.Header.Set("User-Agent", userAgent)
	}
	out.URL.User = nil
	return out
}

// Withheld returns a *WithheldError if the identity comes from the environment but may not use the route, else nil.
func (o TransportOptions) Withheld() error {
	if o.Base == nil || !o.Identity.IsAmbient() {
		return nil
	}
	return o.route().withhold(o.Identity.reveal().source, o.Identity.reveal().reach)
}

// route returns the route to the server, with the options of which the connections are made.
func (o TransportOptions) route() Route { return NewRoute(o.Base, o.Identity, o.Proxy) }

// trusts reports whether the identity may go where the request goes.
func (t *transport) trusts(r *http.Request) bool {
	base := t.options.Base
	switch {
	case base == nil:
		return false
	case t.options.Identity.IsAmbient():
		return SameOrigin(base, r.URL) && t.options.Withheld() == nil
	case SameOrigin(base, r.URL):
		return true
	case base.Scheme == "https" && r.URL.Scheme != "https":
		return false
	default:
		return t.options.PassCredentials && !isForeign(r.Context())
	}
}

// SameOrigin reports whether scheme, host and port are equal, where a port that is not written is the scheme's own.
func SameOrigin(a, b *url.URL) bool {
	return Origin(a) == Origin(b)
}

// Origin returns scheme, host and port of a URL in one spelling.
func Origin(u *url.URL) string {
	scheme := strings.ToLower(u.Scheme)
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "oci": "443"}[scheme]
	}
	return scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

type foreignKey struct{}

// Foreign marks the requests of a context as the target of a server's redirect: they are sent without the identity,
// regardless of PassCredentials.
func Foreign(ctx context.Context) context.Context { return context.WithValue(ctx, foreignKey{}, true) }

func isForeign(ctx context.Context) bool {
	foreign, _ := ctx.Value(foreignKey{}).(bool)
	return foreign
}
