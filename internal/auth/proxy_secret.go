package auth

import (
	"fmt"
	"net/url"
)

// Proxy is the proxy in the Secret of a proxySecretRef. It prints as "REDACTED" by every means.
type Proxy struct {
	Redacted
	address func() *url.URL
}

// maxProxyAddress is Flux's.
const maxProxyAddress = 2048

// NewProxy reads the Secret of a proxySecretRef. The name is the Secret's, for the errors, which have Flux's texts.
func NewProxy(name string, data map[string][]byte) (*Proxy, error) {
	address, found := data["address"]
	switch {
	case !found:
		return nil, fmt.Errorf("secret '%s': key 'address' not found", name)
	case len(address) == 0:
		return nil, fmt.Errorf("secret '%s': proxy address is empty", name)
	case len(address) > maxProxyAddress:
		return nil, fmt.Errorf("secret '%s': proxy URL exceeds maximum length of %d characters", name, maxProxyAddress)
	}
	u, err := url.Parse(string(address))
	if err != nil {
		return nil, fmt.Errorf("secret '%s': failed to parse proxy address: it is not a URL", name)
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
	default:
		got := ""
		if u.Opaque == "" { // else it is rather a user's name
			got = fmt.Sprintf(", got '%s'", u.Scheme)
		}
		return nil, fmt.Errorf("secret '%s': proxy URL must use one of the supported schemes (http, https, socks5)%s", name, got)
	}
	if u.Host == "" {
		return nil, fmt.Errorf("secret '%s': proxy URL has no host", name)
	}
	if username := string(data["username"]); username != "" {
		u.User = url.UserPassword(username, string(data["password"]))
	}
	return &Proxy{address: func() *url.URL { return u }}, nil
}

// URL is the proxy's URL with its user and password, for those who speak its protocol themselves.
func (p *Proxy) URL() *url.URL { return p.address() }

// Key is equal for equal proxies, and discloses nothing about them. Without a proxy it is "".
func (p *Proxy) Key() string {
	if p == nil {
		return ""
	}
	return NewBasic("proxy", p.address().String()).Key()
}
