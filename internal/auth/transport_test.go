package auth

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// world is a network with servers that record the requests.
type world struct {
	*helmtest.Network
	kit *helmtest.Kit
}

func newWorld(t *testing.T) *world {
	t.Helper()
	kit, err := helmtest.NewKit()
	if err != nil {
		t.Fatal(err)
	}
	return &world{helmtest.NewNetwork(), kit}
}

func (w *world) serve(t *testing.T, addr string, secure bool, h http.Handler) *helmtest.Server {
	t.Helper()
	var config *tls.Config
	if secure {
		host, _, _ := strings.Cut(addr, ":")
		c, err := w.kit.CA.ServerConfig(host, false)
		if err != nil {
			t.Fatal(err)
		}
		c.ClientAuth = tls.RequestClientCert
		config = c
	}
	s, err := helmtest.Serve(w.Network, addr, config, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

var ok = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	certificate := ""
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		certificate = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	_, _ = fmt.Fprintf(w, "client %q, proto %s", certificate, r.Proto)
})

func mustParse(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// get returns the body of the answer.
func get(t *testing.T, rt http.RoundTripper, ctx context.Context, raw string, header http.Header) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	for key, values := range header {
		r.Header[key] = values
	}
	before := r.URL.String()
	answer, err := rt.RoundTrip(r)
	if r.URL.String() != before {
		t.Errorf("the request was changed to %s", r.URL)
	}
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

func (w *world) transport(t *testing.T, o TransportOptions) http.RoundTripper {
	t.Helper()
	o.Dial = w.Dial
	rt := NewTransport(o)
	t.Cleanup(rt.(*transport).CloseIdleConnections)
	return rt
}

// identity has basic credentials, the network's authority and a client certificate.
func (w *world) identity() *Identity {
	pair, err := tls.X509KeyPair(w.kit.Client.Cert, w.kit.Client.Key)
	if err != nil {
		panic(err)
	}
	id := newIdentity(secrets{ca: w.kit.CA.Cert, cert: w.kit.Client.Cert, key: w.kit.Client.Key, pair: &pair})
	return id.WithBasic("user", "canary")
}

func TestCredentialsGoHomeOnly(t *testing.T) {
	w := newWorld(t)
	servers := map[string]*helmtest.Server{}
	for _, addr := range []string{"repo.test:80", "repo.test:443", "repo.test:8443", "other.test:80", "other.test:443", "sub.repo.test:443"} {
		servers[addr] = w.serve(t, addr, strings.HasSuffix(addr, "443"), ok)
	}
	for _, tt := range []struct {
		base, url string
		pass      bool
		foreign   bool
		want      string // credentials
	}{
		{base: "https://repo.test", url: "https://repo.test/x", want: "Basic user:canary"},
		{base: "https://REPO.test:443/charts", url: "https://repo.test/x", want: "Basic user:canary"},
		{base: "https://repo.test", url: "https://repo.test:443/x", want: "Basic user:canary"},
		{base: "http://repo.test:80", url: "http://repo.test/x", want: "Basic user:canary"},
		{base: "https://repo.test", url: "https://repo.test/x", foreign: true, want: "Basic user:canary"},
		{base: "https://repo.test", url: "https://repo.test:8443/x"},
		{base: "https://repo.test", url: "http://repo.test/x"},
		{base: "http://repo.test", url: "https://repo.test/x"},
		{base: "https://repo.test", url: "https://sub.repo.test/x"},
		{base: "https://repo.test", url: "https://other.test/x"},
		{base: "https://repo.test", url: "https://other.test/x", pass: true, want: "Basic user:canary"},
		{base: "https://repo.test", url: "https://repo.test:8443/x", pass: true, want: "Basic user:canary"},
		{base: "http://repo.test", url: "http://other.test/x", pass: true, want: "Basic user:canary"},
		{base: "http://repo.test", url: "https://other.test/x", pass: true, want: "Basic user:canary"},
		{base: "https://repo.test", url: "http://other.test/x", pass: true},
		{base: "https://repo.test", url: "http://repo.test/x", pass: true},
		{base: "https://repo.test", url: "https://other.test/x", pass: true, foreign: true},
		{url: "https://repo.test/x"},
		{url: "https://repo.test/x", pass: true},
		// User and password in a URL are for the host in that URL.
		{base: "https://repo.test", url: "https://own:pw@other.test/x", want: "Basic own:pw"},
		{base: "https://repo.test", url: "https://token@other.test/x", want: "Basic token:"},
		{base: "https://repo.test", url: "https://own:pw@other.test/x", pass: true, want: "Basic user:canary"},
		{base: "https://repo.test", url: "https://own:pw@repo.test/x", want: "Basic user:canary"},
	} {
		t.Run(fmt.Sprintf("%s to %s pass %v foreign %v", tt.base, tt.url, tt.pass, tt.foreign), func(t *testing.T) {
			o := TransportOptions{Identity: w.identity(), PassCredentials: tt.pass}
			if tt.base != "" {
				o.Base = mustParse(t, tt.base)
			}
			ctx := t.Context()
			if tt.foreign {
				ctx = Foreign(ctx)
			}
			// Headers of the caller with these names must not be sent.
			header := http.Header{"Authorization": {"Bearer canary"}, "Cookie": {"a=canary"}, "Referer": {"http://h/?canary"}}
			body, err := get(t, w.transport(t, o), ctx, tt.url, header)
			if err != nil {
				t.Fatal(err)
			}
			var got []helmtest.Request
			for _, s := range servers {
				got = append(got, s.Log.Drain()...)
			}
			if len(got) != 1 {
				t.Fatalf("%d requests", len(got))
			}
			want := strings.TrimSpace("GET /x 200 " + tt.want)
			if got[0].String() != want {
				t.Errorf("got %q, want %q", got[0], want)
			}
			trusted := strings.HasSuffix(tt.want, ":canary")
			if presented := strings.Contains(body, `"client"`); presented != (trusted && strings.HasPrefix(tt.url, "https")) {
				t.Errorf("client certificate: %s", body)
			}
			for _, name := range []string{"Cookie", "Referer", "Accept-Encoding"} {
				if value := got[0].Header.Get(name); value != "" {
					t.Errorf("%s: %s", name, value)
				}
			}
		})
	}
}

func TestUserAgentAndHTTP2(t *testing.T) {
	w := newWorld(t)
	kit := w.kit
	config, err := kit.CA.ServerConfig("repo.test", false)
	if err != nil {
		t.Fatal(err)
	}
	config.NextProtos = []string{"h2", "http/1.1"}
	s, err := helmtest.Serve(w.Network, "repo.test:443", config, ok)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o := TransportOptions{Identity: w.identity(), Base: mustParse(t, s.URL), UserAgent: "helmsrc/1"}
	body, err := get(t, w.transport(t, o), t.Context(), s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(body, "HTTP/2.0") {
		t.Errorf("got %s", body)
	}
	if got := s.Log.All()[0].Header.Get("User-Agent"); got != "helmsrc/1" {
		t.Errorf("user agent %q", got)
	}
}

func TestEmptyCredentialsAreNotSent(t *testing.T) {
	w := newWorld(t)
	s := w.serve(t, "repo.test:80", false, ok)
	for _, id := range []*Identity{nil, NewBasic("", ""), NewBasic("user", ""), NewBasic("", "password")} {
		o := TransportOptions{Identity: id, Base: mustParse(t, s.URL)}
		if _, err := get(t, w.transport(t, o), t.Context(), s.URL, nil); err != nil {
			t.Fatal(err)
		}
		if got := s.Log.Drain()[0].Header.Get("Authorization"); got != "" {
			t.Errorf("sent %q", got)
		}
	}
}

func TestUserinfoOfTheRepository(t *testing.T) {
	w := newWorld(t)
	s := w.serve(t, "repo.test:80", false, ok)
	o := TransportOptions{Base: mustParse(t, "http://user:pw@repo.test")}
	if _, err := get(t, w.transport(t, o), t.Context(), "http://repo.test/x", nil); err != nil {
		t.Fatal(err)
	}
	if got := s.Log.Drain()[0].String(); got != "GET /x 200 Basic user:pw" {
		t.Errorf("got %q", got)
	}
}

func TestConnectionsAreNotShared(t *testing.T) {
	w := newWorld(t)
	remotes := map[string]bool{}
	s := w.serve(t, "repo.test:80", false, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		remotes[r.RemoteAddr] = true
	}))
	base := mustParse(t, s.URL)
	for _, id := range []*Identity{nil, NewBasic("a", "b"), NewBasic("a", "c")} {
		rt := w.transport(t, TransportOptions{Identity: id, Base: base})
		for range 2 {
			if _, err := get(t, rt, t.Context(), s.URL, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(remotes) != 3 {
		t.Errorf("%d connections for 3 identities", len(remotes))
	}
}

func TestTLS(t *testing.T) {
	w := newWorld(t)
	w.serve(t, "repo.test:443", true, ok)
	serve := func(addr, certificate string, version uint16) {
		config, err := w.kit.CA.ServerConfig(certificate, false)
		if err != nil {
			t.Fatal(err)
		}
		config.MinVersion, config.MaxVersion = tls.VersionTLS10, version
		s, err := helmtest.Serve(w.Network, addr, config, ok)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
	}
	serve("old.test:443", "old.test", tls.VersionTLS11)
	serve("wrong.test:443", "repo.test", tls.VersionTLS13)
	trusting := newIdentity(secrets{ca: w.kit.CA.Cert})
	for _, tt := range []struct {
		name, url string
		id        *Identity
		fails     bool
	}{
		{"case 9: private CA", "https://repo.test", trusting, false},
		{"unknown CA", "https://repo.test", nil, true},
		{"other CA", "https://repo.test", newIdentity(secrets{ca: w.kit.Other.Cert}), true},
		{"other name", "https://wrong.test", trusting, true},
		{"TLS 1.1", "https://old.test", trusting, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := get(t, w.transport(t, TransportOptions{Identity: tt.id, Base: mustParse(t, tt.url)}), t.Context(), tt.url, nil)
			if (err != nil) != tt.fails {
				t.Errorf("got %v", err)
			}
		})
	}
	config := trusting.TLSConfig()
	if config.InsecureSkipVerify || config.MinVersion != tls.VersionTLS12 {
		t.Errorf("%+v", config)
	}
}

func TestProxy(t *testing.T) {
	w := newWorld(t)
	w.serve(t, "repo.test:443", true, ok)
	w.serve(t, "repo.test:80", false, ok)
	w.serve(t, "direct.test:80", false, ok)
	proxy := w.serve(t, "proxy.test:3128", false, helmtest.Proxy(w.Network, "px:canary-proxy"))
	env := map[string]string{
		"HTTP_PROXY":  "http://px:canary-proxy@proxy.test:3128",
		"https_proxy": "http://px:canary-proxy@proxy.test:3128",
		"NO_PROXY":    "direct.test,10.0.0.0/8",
	}
	for _, tt := range []struct {
		name, url string
		env       map[string]string
		want      []string
		wantErr   string
	}{
		{name: "https", url: "https://repo.test/x", want: []string{"CONNECT repo.test:443 200 Basic px:canary-proxy"}},
		{name: "http", url: "http://repo.test/x", want: []string{"GET http://repo.test/x 200 Basic user:canary"}},
		{name: "no proxy", url: "http://direct.test/x"},
		{name: "wrong password", url: "https://repo.test/x", env: map[string]string{"HTTPS_PROXY": "http://px:canary-wrong@proxy.test:3128"},
			want: []string{"CONNECT repo.test:443 407 Basic px:canary-wrong"}, wantErr: "the proxy answered 407 Proxy Authentication Required"},
		{name: "host that the proxy does not know", url: "https://unknown.test/x",
			want: []string{"CONNECT unknown.test:443 502 Basic px:canary-proxy"}, wantErr: "the proxy answered 502 Bad Gateway"},
		{name: "refused", url: "https://repo.test/x", env: map[string]string{"HTTPS_PROXY": "http://px:canary@proxy.test:1"}, wantErr: "refused"},
		{name: "invalid", url: "https://repo.test/x", env: map[string]string{"HTTPS_PROXY": "http://px:can\x7fary@proxy.test:1"},
			wantErr: "the proxy address in HTTPS_PROXY is not a valid URL"},
		{name: "invalid but not used", url: "http://direct.test/x", env: map[string]string{"HTTPS_PROXY": "http://px:can\x7fary@proxy.test:1"}},
		{name: "CGI", url: "http://repo.test/x", env: map[string]string{"HTTP_PROXY": env["HTTP_PROXY"], "REQUEST_METHOD": "GET"}, wantErr: "CGI"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.env == nil {
				tt.env = env
			}
			o := TransportOptions{Identity: w.identity(), Base: mustParse(t, tt.url), Getenv: func(key string) string { return tt.env[key] }}
			_, err := get(t, w.transport(t, o), t.Context(), tt.url, nil)
			if tt.wantErr == "" && err != nil || tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)) {
				t.Errorf("got error %v, want %q", err, tt.wantErr)
			}
			for _, verb := range []string{"%v", "%+v", "%#v"} {
				if strings.Contains(fmt.Sprintf(verb, err), "canary") {
					t.Errorf("the error shows the password: "+verb, err)
				}
			}
			if got := helmtest.Strings(proxy.Log.Drain()); !slices.Equal(got, tt.want) {
				t.Errorf("proxy got %q, want %q", got, tt.want)
			}
		})
	}
	var refused *ProxyError
	if err := checkTunnel(t.Context(), nil, nil, &http.Response{StatusCode: 407}); !errors.As(err, &refused) || refused.Hint() == "" {
		t.Errorf("no hint in %v", err)
	}
}

func TestHeaderLimit(t *testing.T) {
	w := newWorld(t)
	s := w.serve(t, "repo.test:80", false, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X", strings.Repeat("x", 2*maxHeaderBytes))
	}))
	if _, err := get(t, w.transport(t, TransportOptions{}), t.Context(), s.URL, nil); err == nil {
		t.Error("no limit")
	}
}

// A certificate without its key, or the other way around, is no identity.
func TestNewTLSNeedsBoth(t *testing.T) {
	for name, pair := range map[string][2]string{"certificate": {"canary", ""}, "key": {"", "canary"}} {
		_, err := NewTLS(nil, []byte(pair[0]), []byte(pair[1]))
		if err == nil || !strings.Contains(err.Error(), "have to be set together") || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s alone: %v", name, err)
		}
	}
}
