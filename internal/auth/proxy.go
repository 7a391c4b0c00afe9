package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// proxyFunc returns the proxy of the manifest, else the environment's.
func (o TransportOptions) proxyFunc() func(*http.Request) (*url.URL, error) {
	if o.Proxy != nil {
		return http.ProxyURL(o.Proxy.URL()) // for every host, regardless of NO_PROXY: a manifest named it
	}
	proxy := proxyFunc(o.Getenv)
	if proxy == nil || !o.Identity.reveal().skipped {
		return proxy
	}
	return func(r *http.Request) (*url.URL, error) {
		u, err := proxy(r)
		if u == nil || u.User == nil || u.Scheme != "https" {
			return u, err
		}
		// Anyone may answer at the proxy's address: the environment's login for it is not sent.
		anonymous := *u
		anonymous.User = nil
		return &anonymous, err
	}
}

// proxyFunc reads HTTP_PROXY, HTTPS_PROXY and NO_PROXY, in either case, once.
func proxyFunc(getenv func(string) string) func(*http.Request) (*url.URL, error) {
	if getenv == nil {
		return nil
	}
	named := func(upper, lower string) string {
		if getenv(upper) != "" {
			return upper
		}
		return lower
	}
	either := func(upper, lower string) string { return getenv(named(upper, lower)) }
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
			upper := strings.ToUpper(r.URL.Scheme) + "_PROXY"
			variable := named(upper, strings.ToLower(upper))
			return nil, &finding.Problem{ // without the address, which may contain a password
				Text:   "the proxy address in " + variable + " is not a valid URL",
				Advice: "correct the environment variable " + variable + ", as in http://proxy.example.org:3128, or unset it",
			}
		}
		return proxy(r.URL)
	}
}

// invalidProxy reports whether the httpproxy package would silently ignore this address and connect directly.
func invalidProxy(address string) bool {
	if address == "" {
		return false
	}
	u, err := url.Parse(address)
	switch {
	case err == nil && u.Scheme != "" && u.Host != "":
		return !isPort(u.Port())
	case strings.Contains(address, "://"): // behind another http:// it would be a host called http
		return true
	}
	u, err = url.Parse("http://" + address)
	return err != nil || !isPort(u.Port())
}

// isPort reports whether a server can listen at a port; "" is the port of the scheme.
func isPort(port string) bool {
	if port == "" {
		return true
	}
	_, err := strconv.ParseUint(port, 10, 16)
	return err == nil
}

// ProxyError reports that a proxy did not open a tunnel.
type ProxyError struct {
	Code int
}

func (e *ProxyError) Error() string {
	return fmt.Sprintf("the proxy answered %d %s", e.Code, http.StatusText(e.Code))
}

// Hint returns advice for the user, or "".
func (e *ProxyError) Hint() string {
	if e.Code == http.StatusProxyAuthRequired {
		return finding.ProxyLogin
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
