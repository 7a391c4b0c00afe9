package auth

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// PublicDial wraps dial: it refuses connections to addresses that are not public, except to the proxies of the environment.
// The address of a name is known when the connection is open: it is closed before anything is sent.
func PublicDial(dial DialFunc, getenv func(string) string) DialFunc {
	dial = orPlain(dial)
	proxies := environmentProxies(getenv)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if proxies[strings.ToLower(addr)] {
			return dial(ctx, network, addr)
		}
		refused := &finding.Problem{
			Class: finding.Lasting, Advice: finding.WithoutUntrusted,
			Text: fmt.Sprintf(finding.NotPublic, addr),
		}
		if host, _, err := net.SplitHostPort(addr); err != nil || isInsideName(host) {
			return nil, refused
		}
		conn, err := dial(ctx, network, addr)
		if err == nil && leadsInside(conn) {
			_ = conn.Close()
			return nil, refused
		}
		return conn, err
	}
}

// environmentProxies are the addresses of the proxies that the environment names.
func environmentProxies(getenv func(string) string) map[string]bool {
	proxies := map[string]bool{}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		text := getenv(name)
		if text != "" && !strings.Contains(text, "://") {
			text = "http://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" {
			continue
		}
		port := u.Port()
		if port == "" {
			port = map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
		}
		if port == "" {
			port = "80"
		}
		proxies[strings.ToLower(net.JoinHostPort(u.Hostname(), port))] = true
	}
	return proxies
}
