package auth

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// DialFunc opens a connection, as net.Dialer's DialContext does.
type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// specialPrefixes are the ranges beside those that package netip knows that lead to machines which are not on the
// public Internet: "this network", carrier-grade NAT (where one cloud keeps its metadata server), the addresses of
// benchmarks, reserved and broadcast ones, and IPv4 addresses wrapped for NAT64.
func specialPrefixes() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"),
		netip.MustParsePrefix("100.64.0.0/10"),
		netip.MustParsePrefix("198.18.0.0/15"),
		netip.MustParsePrefix("240.0.0.0/4"),
		netip.MustParsePrefix("64:ff9b::/96"),
	}
}

// isInside reports whether an address is a loopback, private or link-local one, or otherwise not public.
func isInside(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() ||
		slices.ContainsFunc(specialPrefixes(), func(p netip.Prefix) bool { return p.Contains(a) })
}

// isInsideName reports whether a URL's host is an internal address, or a name of this machine.
func isInsideName(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return isInside(a)
	}
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// refusedRealm reports that a registry named a token server that must not see the registry's credentials.
func refusedRealm(registry *url.URL, realm, reason string) error {
	return &finding.Problem{
		Class:  finding.Login,
		Text:   fmt.Sprintf("registry '%s' names '%s' as its token server, which is refused: %s", registry.Host, realm, reason),
		Advice: "credentials are only sent to token servers at public https addresses, or on the registry's own host",
	}
}

// checkRealm decides whether a registry's credentials may be shown to the token server that it names: over https, or
// http if the registry is reached over http itself, and not on an inside address unless that is the registry's own
// host. Credentials of the environment, which a registry on this machine gets over http, do not leave the machine that way.
// Names are judged again when they are dialled, by realmGuard.
func checkRealm(realm string, registry *url.URL, ambient bool) (*url.URL, error) {
	refuse := func(shown, reason string) error {
		return refusedRealm(registry, shown, reason)
	}
	u, err := url.Parse(realm)
	if err != nil || u.Opaque != "" || u.Hostname() == "" {
		return nil, refuse("REDACTED", "it is not a URL")
	}
	shown := u.Scheme + "://" + u.Host
	switch {
	case u.User != nil:
		return nil, refuse(shown, "its URL contains credentials")
	case u.Scheme == "http" && registry.Scheme != "http":
		return nil, refuse(shown, "it does not use https, but the registry does")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, refuse(shown, "only https is allowed")
	case u.Scheme == "http" && ambient && isLoopbackHost(registry.Hostname()) && !isLoopbackHost(u.Hostname()):
		return nil, refuse(shown, "it does not use https, and the login is from this machine")
	case isInsideName(u.Hostname()) && !sameHostname(u, registry):
		return nil, refuse(shown, "a loopback, private or link-local address that is not the registry's own")
	}
	return u, nil
}

func sameHostname(a, b *url.URL) bool { return strings.EqualFold(a.Hostname(), b.Hostname()) }

// realmGuard checks the connections of one registry and of its token servers; without a registry it checks nothing. A
// token server whose name leads to an internal address is refused, unless the registry is internal as well: a public
// registry has no business there.
type realmGuard struct {
	registry *url.URL
	guarded  bool // redirects from outside to the inside are refused
	inside   atomic.Bool
}

// registryDial records whether the registry itself is at an internal address.
func (g *realmGuard) registryDial(dial DialFunc) DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err == nil && g.registry != nil && dialsHost(addr, g.registry.Hostname()) && leadsInside(conn) {
			g.inside.Store(true)
		}
		return conn, err
	}
}

// realmDial refuses connections to token servers at internal addresses. Connections to a proxy pass: the proxy decides
// which hosts it connects to.
func (g *realmGuard) realmDial(dial DialFunc, realm *url.URL) DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil || !dialsHost(addr, realm.Hostname()) || sameHostname(realm, g.registry) {
			return conn, err
		}
		if leadsInside(conn) && !g.inside.Load() {
			_ = conn.Close()
			return nil, refusedRealm(g.registry, realm.Scheme+"://"+realm.Host, "its name resolves to a loopback, private or link-local address")
		}
		return conn, nil
	}
}

// foreignDial refuses connections to other hosts, where a registry redirects to, that turn out to be inside. A registry
// that is inside may redirect to its neighbours.
func (g *realmGuard) foreignDial(dial DialFunc) DialFunc {
	if !g.guarded {
		return dial
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		host, _, _ := net.SplitHostPort(addr)
		if err != nil || !leadsInside(conn) || g.mayBeInside(host) || !g.redirected(ctx, host) {
			return conn, err
		}
		_ = conn.Close()
		return nil, g.leadsInside(addr)
	}
}

// foreign sends a request to another host. It judges the URL by the host that is written in it, and foreignDial the address.
func (g *realmGuard) foreign(r *http.Request, pool *Pool) (*http.Response, error) {
	host := r.URL.Hostname()
	if g.guarded && isInsideName(host) && !g.mayBeInside(host) {
		return nil, g.leadsInside(r.URL.Host)
	}
	return pool.RoundTrip(r.WithContext(context.WithValue(r.Context(), redirectKey{}, host)))
}

// leadsInside is the refusal of a host, with its port, where the registry leads to.
func (g *realmGuard) leadsInside(host string) error {
	return &finding.Problem{
		Class: finding.Lasting, Advice: finding.PrivateRedirects,
		Text: fmt.Sprintf("'%s' resolves to '%s', a loopback, private or link-local address: refused for a request with a login of this machine", g.registry.Host, host),
	}
}

// mayBeInside reports whether a host may be inside: the registry's own, or any if the registry is.
func (g *realmGuard) mayBeInside(host string) bool {
	return g.inside.Load() || isInsideName(g.registry.Hostname()) || strings.EqualFold(host, g.registry.Hostname())
}

type redirectKey struct{}

// redirected reports whether a connection is to the host of the request that it is made for, and not to a proxy.
func (g *realmGuard) redirected(ctx context.Context, host string) bool {
	to, _ := ctx.Value(redirectKey{}).(string)
	return strings.EqualFold(to, host)
}

func dialsHost(addr, host string) bool {
	h, _, err := net.SplitHostPort(addr)
	return err == nil && strings.EqualFold(h, host)
}

func leadsInside(conn net.Conn) bool {
	tcp, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return false
	}
	a, ok := netip.AddrFromSlice(tcp.IP)
	return ok && isInside(a)
}
