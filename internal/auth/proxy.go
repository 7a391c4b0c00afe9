package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"golang.org/x/net/http/httpproxy"
)

// proxyFunc reads HTTP_PROXY, HTTPS_PROXY and NO_PROXY, in either case, once.
func proxyFunc(getenv func(string) string) func(*http.Request) (*url.URL, error) {
	if getenv == nil {
		return nil
	}
	either := func(upper, lower string) string {
		if value := getenv(upper); value != "" {
			return value
		}
		return getenv(lower)
	}
	config := httpproxy.Config{
		HTTPProxy:  either("HTTP_PROXY", "http_proxy"),
		HTTPSProxy: either("HTTPS_PROXY", "https_proxy"),
		NoProxy:    either("NO_PROXY", "no_proxy"),
		CGI:        getenv("REQUEST_METHOD") != "",
	}
	proxy := config.ProxyFunc()
	invalid := map[string]bool{"http": invalidProxy(config.HTTPProxy), "https": invalidProxy(config.HTTPSProxy)}
	return func(r *http.Request) (*url.URL, error) {
		if invalid[r.URL.Scheme] {
			return nil, &invalidProxyError{scheme: r.URL.Scheme}
		}
		return proxy(r.URL)
	}
}

// invalidProxy finds what the httpproxy package would pass over in silence, to connect directly.
func invalidProxy(address string) bool {
	if address == "" {
		return false
	}
	if u, err := url.Parse(address); err == nil && u.Scheme != "" && u.Host != "" {
		return false
	}
	_, err := url.Parse("http://" + address)
	return err != nil
}

// invalidProxyError does not show the address: it may hold a password.
type invalidProxyError struct{ scheme string }

func (e *invalidProxyError) Error() string {
	if e.scheme == "https" {
		return "the proxy address in HTTPS_PROXY is not a valid URL"
	}
	return "the proxy address in HTTP_PROXY is not a valid URL"
}

// ProxyError tells that a proxy did not open a tunnel.
type ProxyError struct {
	Code int
}

func (e *ProxyError) Error() string {
	return fmt.Sprintf("the proxy answered %d %s", e.Code, http.StatusText(e.Code))
}

// Hint tells what to do.
func (e *ProxyError) Hint() string {
	if e.Code == http.StatusProxyAuthRequired {
		return "the proxy wants credentials: write them into the Secret of spec.proxySecretRef, or into HTTPS_PROXY or HTTP_PROXY as http://user:password@host:port"
	}
	return ""
}

var errNoTunnel = errors.New("the proxy did not answer")

func checkTunnel(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
	if answer == nil {
		return errNoTunnel
	}
	if answer.StatusCode != http.StatusOK {
		return &ProxyError{Code: answer.StatusCode}
	}
	return nil
}
