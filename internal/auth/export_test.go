package auth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// To is the environment's route to a host.
func To(host string) Route { return NewRoute(&url.URL{Scheme: "https", Host: host}, nil, nil) }

// LoginAt asks for a login by the environment's route to a host.
func LoginAt(ctx context.Context, l Logins, host, repository string) (Login, error) {
	return l.login(ctx, To(host), repository)
}

// LoginBy asks for a login by a route.
func LoginBy(ctx context.Context, l Logins, on Route, repository string) (Login, error) {
	return l.login(ctx, on, repository)
}

// Login asks for the user's login by the environment's route.
func (a *Ambient) Login(ctx context.Context, host, repository string) (Login, error) {
	return LoginAt(ctx, a, host, repository)
}

// BasicOf returns the user name and password of an identity, also of an ambient one.
func BasicOf(id *Identity) (username, password string, ok bool) { return id.basic() }

// FailingLogins are logins of a helper that is broken.
type FailingLogins struct{}

func (FailingLogins) login(context.Context, Route, string) (Login, error) {
	return Login{}, errors.New("helper is broken")
}

// Key differs from the keys of all other logins.
func (FailingLogins) Key() string { return "failing" }

// ProxyOf returns the proxy that connections with these options take to a server.
func ProxyOf(o TransportOptions, to string) (*url.URL, error) {
	u, err := url.Parse(to)
	if err != nil {
		return nil, err
	}
	return o.proxyFunc()(&http.Request{URL: u})
}
