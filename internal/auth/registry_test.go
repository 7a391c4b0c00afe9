package auth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// fakeRegistry is a registry and its token server, each with a handler of a test's own making.
type fakeRegistry struct {
	network  *helmtest.Network
	registry *helmtest.Server
	tokens   *helmtest.Server
	now      time.Time
	tokenMap *auth.Tokens
}

const fakeRealm = "http://auth.test/token"

func newFakeRegistry(t *testing.T, registry, tokens http.HandlerFunc) *fakeRegistry {
	t.Helper()
	f := &fakeRegistry{network: helmtest.NewNetwork(), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	f.registry = f.serve(t, "registry.test:80", registry)
	f.tokens = f.serve(t, "auth.test:80", tokens)
	f.tokenMap = auth.NewTokens(func() time.Time { return f.now })
	return f
}

func (f *fakeRegistry) serve(t *testing.T, addr string, h http.HandlerFunc) *helmtest.Server {
	t.Helper()
	s, err := helmtest.Serve(f.network, addr, nil, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (f *fakeRegistry) transport(t *testing.T, logins auth.Logins, dial auth.DialFunc) http.RoundTripper {
	t.Helper()
	if dial == nil {
		dial = f.network.Dial
	}
	rt := auth.NewRegistryTransport(auth.RegistryOptions{
		TransportOptions: auth.TransportOptions{Base: &url.URL{Scheme: "http", Host: "registry.test"}, Dial: dial, UserAgent: "helmsrc/test"},
		Logins:           logins, Tokens: f.tokenMap,
	})
	t.Cleanup(rt.(interface{ CloseIdleConnections() }).CloseIdleConnections)
	return rt
}

// get returns the status, or the error.
func get(t *testing.T, rt http.RoundTripper, rawURL string) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, rawURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func wantGet(t *testing.T, rt http.RoundTripper, rawURL string, want int) {
	t.Helper()
	if got, err := get(t, rt, rawURL); err != nil || got != want {
		t.Errorf("%s: got %d, %v; want %d", rawURL, got, err, want)
	}
}

func wantRequests(t *testing.T, s *helmtest.Server, want int) {
	t.Helper()
	if got := s.Log.All(); len(got) != want {
		t.Errorf("%s got %d requests, want %d: %q", s.Addr, len(got), want, helmtest.Strings(got))
	}
}

// wants is a registry that accepts the token, and names the realm in answers to requests without it.
func wants(header func() string, realm string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != header() {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+realm+`",service="s"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
}

func static(s string) func() string { return func() string { return s } }

func answer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

const (
	manifestURL = "http://registry.test/v2/charts/podinfo/manifests/1.0.0"
	otherURL    = "http://registry.test/v2/charts/other/manifests/1.0.0"
)

var canaryLogin = auth.StaticLogin{Credential: auth.BasicCredential("alice", "canary-password")}

func TestBearer(t *testing.T) {
	f := newFakeRegistry(t, wants(static("Bearer tok"), fakeRealm), answer(`{"token":"tok","expires_in":300}`))
	rt := f.transport(t, canaryLogin, nil)
	wantGet(t, rt, manifestURL, 200)
	wantGet(t, rt, manifestURL, 200)
	wantRequests(t, f.registry, 3)
	wantRequests(t, f.tokens, 1)
	r := f.tokens.Log.All()[0]
	if user, password, _ := (&http.Request{Header: r.Header}).BasicAuth(); user != "alice" || password != "canary-password" {
		t.Errorf("token request %s", r)
	}
	if r.URI != "/token?scope=repository%3Acharts%2Fpodinfo%3Apull&service=s" {
		t.Errorf("token request %s", r.URI)
	}
	t.Run("another repository needs no second challenge", func(t *testing.T) {
		wantGet(t, rt, otherURL, 200)
		wantRequests(t, f.registry, 4)
		wantRequests(t, f.tokens, 2)
	})
	t.Run("an old token is not used", func(t *testing.T) {
		f.now = f.now.Add(291 * time.Second)
		wantGet(t, rt, manifestURL, 200)
		wantRequests(t, f.registry, 5)
		wantRequests(t, f.tokens, 3)
	})
	t.Run("transports with the same logins share tokens", func(t *testing.T) {
		wantGet(t, f.transport(t, canaryLogin, nil), manifestURL, 200)
		wantRequests(t, f.tokens, 3)
	})
	t.Run("with others they do not", func(t *testing.T) {
		wantGet(t, f.transport(t, nil, nil), manifestURL, 200)
		wantRequests(t, f.tokens, 4)
		if r := f.tokens.Log.All()[3]; r.Header.Get("Authorization") != "" {
			t.Errorf("an anonymous transport sent %s", r)
		}
	})
}

func TestScopeOfAnotherRepository(t *testing.T) {
	registry := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+fakeRealm+`",scope="repository:charts/podinfo:pull"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
	f := newFakeRegistry(t, registry, answer(`{"token":"tok"}`))
	rt := f.transport(t, canaryLogin, nil)
	wantGet(t, rt, manifestURL, 200)
	wantGet(t, rt, otherURL, 200)
	wantRequests(t, f.tokens, 2)
	if got := f.tokens.Log.All()[1].URI; strings.Contains(got, "podinfo") {
		t.Errorf("the second token is for %s", got)
	}
}

func TestBearerOfManyAtOnce(t *testing.T) {
	f := newFakeRegistry(t, wants(static("Bearer tok"), fakeRealm), answer(`{"access_token":"tok"}`))
	rt := f.transport(t, canaryLogin, nil)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { wantGet(t, rt, manifestURL, 200) })
	}
	all.Wait()
	wantRequests(t, f.registry, 21)
	wantRequests(t, f.tokens, 1)
}

func TestTokenRevokedEarly(t *testing.T) {
	current := "one"
	f := newFakeRegistry(t, wants(func() string { return "Bearer " + current }, fakeRealm),
		func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"token":%q,"expires_in":99999999999999}`, current)
		})
	rt := f.transport(t, canaryLogin, nil)
	wantGet(t, rt, manifestURL, 200)
	current = "two"
	wantGet(t, rt, manifestURL, 200)
	wantRequests(t, f.tokens, 2)
}

func TestRegistryThatIsNeverContent(t *testing.T) {
	count := 0
	f := newFakeRegistry(t, wants(static("Bearer never"), fakeRealm), func(w http.ResponseWriter, _ *http.Request) {
		count++
		fmt.Fprintf(w, `{"token":"t%d"}`, count)
	})
	wantGet(t, f.transport(t, canaryLogin, nil), manifestURL, 401)
	wantRequests(t, f.registry, 2)
	wantRequests(t, f.tokens, 1)
}

func TestTokenForMore(t *testing.T) {
	// The registry requires another right for lists of tags, as Azure's does.
	registry := func(w http.ResponseWriter, r *http.Request) {
		scope := "repository:charts/podinfo:pull"
		if strings.Contains(r.URL.Path, "/tags/") {
			scope = "repository:charts/podinfo:metadata_read,push"
		}
		right := strings.TrimSuffix(scope[strings.LastIndex(scope, ":")+1:], ",push")
		if !strings.Contains(r.Header.Get("Authorization"), right) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+fakeRealm+`",service="s",scope="`+scope+`",error="insufficient_scope"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
	tokens := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"token":"rights-%s"}`, strings.ReplaceAll(strings.Join(r.URL.Query()["scope"], "+"), ":", "-"))
	}
	f := newFakeRegistry(t, registry, tokens)
	rt := f.transport(t, canaryLogin, nil)
	wantGet(t, rt, manifestURL, 200)
	wantGet(t, rt, "http://registry.test/v2/charts/podinfo/tags/list", 200)
	wantGet(t, rt, manifestURL, 200)
	wantRequests(t, f.tokens, 2)
	if got := f.tokens.Log.All()[1].URI; strings.Contains(got, "push") || !strings.Contains(got, "metadata_read") {
		t.Errorf("second token request %s", got)
	}
}

func TestIdentityToken(t *testing.T) {
	var form string
	f := newFakeRegistry(t, wants(static("Bearer tok"), fakeRealm), func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		form = r.Method + " " + string(body)
		_, _ = io.WriteString(w, `{"access_token":"tok"}`)
	})
	rt := f.transport(t, auth.StaticLogin{Credential: auth.IdentityTokenCredential("canary-identity")}, nil)
	wantGet(t, rt, manifestURL, 200)
	want := "POST client_id=helmsrc&grant_type=refresh_token&refresh_token=canary-identity&scope=repository%3Acharts%2Fpodinfo%3Apull&service=s"
	if form != want {
		t.Errorf("got %s\nwant %s", form, want)
	}
}

func TestBasicChallenge(t *testing.T) {
	registry := func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "canary-password" {
			w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
	f := newFakeRegistry(t, registry, nil)
	rt := f.transport(t, canaryLogin, nil)
	wantGet(t, rt, manifestURL, 200)
	wantGet(t, rt, otherURL, 200)
	wantRequests(t, f.registry, 3)
	t.Run("without a login", func(t *testing.T) {
		wantGet(t, f.transport(t, nil, nil), manifestURL, 401)
		wantRequests(t, f.registry, 4)
	})
	t.Run("with another one", func(t *testing.T) {
		wrong := auth.StaticLogin{Credential: auth.BasicCredential("alice", "wrong")}
		wantGet(t, f.transport(t, wrong, nil), manifestURL, 401)
		wantRequests(t, f.registry, 6)
	})
}

// A registry that lets anyone read asks for a login when something is written: the body is sent again, if it can be.
func TestLoginForWritingAlone(t *testing.T) {
	var written string
	registry := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if _, password, _ := r.BasicAuth(); r.Method == http.MethodPut && password != "canary-password" {
			w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		written = string(body)
	}
	for name, tc := range map[string]struct {
		body   io.Reader
		status int
	}{
		"again": {strings.NewReader("a manifest"), http.StatusOK},
		"once":  {io.MultiReader(strings.NewReader("a manifest")), http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			written = ""
			rt := newFakeRegistry(t, registry, nil).transport(t, canaryLogin, nil)
			wantGet(t, rt, manifestURL, 200)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, manifestURL, tc.body)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != tc.status || (written == "a manifest") != (tc.status == http.StatusOK) {
				t.Errorf("status %d, written %q", resp.StatusCode, written)
			}
		})
	}
}

func TestNoLoginIsAskedForWhereNoneIsWanted(t *testing.T) {
	f := newFakeRegistry(t, answer("hello"), nil)
	wantGet(t, f.transport(t, auth.FailingLogins{}, nil), manifestURL, 200)
	wantGet(t, f.transport(t, canaryLogin, nil), manifestURL, 200)
	for _, r := range f.registry.Log.All() {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("%s", r)
		}
	}
}

func TestLoginThatFails(t *testing.T) {
	f := newFakeRegistry(t, wants(static("Bearer tok"), fakeRealm), answer(`{"token":"tok"}`))
	if _, err := get(t, f.transport(t, auth.FailingLogins{}, nil), manifestURL); err == nil || err.Error() != "helper is broken" {
		t.Error(err)
	}
}

func TestTokenRefusals(t *testing.T) {
	for _, test := range []struct {
		name      string
		tokens    http.HandlerFunc
		want      string
		auth      bool
		transient bool
	}{
		{"401", status(401, "", `{"details":"incorrect username or password"}`), "token server 'http://auth.test' answered 401 Unauthorized: incorrect username or password", true, false},
		{"403", status(403, "", `{"errors":[{"code":"DENIED","message":"denied"}]}`), "answered 403 Forbidden: denied", true, false},
		{"503", status(503, "", "busy"), "answered 503 Service Unavailable: busy", false, true},
		{"429", status(429, "", ""), "answered 429 Too Many Requests", false, true},
		{"redirect", status(307, "http://evil.test/", ""), "answered 307 Temporary Redirect: redirects of token requests are not followed", false, false},
		{"echo", status(401, "", "no user alice:canary-password, YWxpY2U6Y2FuYXJ5LXBhc3N3b3Jk"), "no user alice:REDACTED, REDACTED", true, false},
		{"no JSON", answer("hello"), "its answer is not the JSON of a token", false, false},
		{"no token", answer("{}"), "its answer contains no token", false, false},
		{"line feed", answer(`{"token":"a\nb"}`), "the token contains invalid characters", false, false},
		{"too large", answer(`{"token":"` + strings.Repeat("x", 1<<20) + `"}`), "its answer is too large for a token", false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFakeRegistry(t, wants(static("Bearer tok"), fakeRealm), test.tokens)
			evil := f.serve(t, "evil.test:80", answer(""))
			rt := f.transport(t, canaryLogin, nil)
			_, err := get(t, rt, manifestURL)
			var refused *auth.TokenError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "canary") {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if refused.AuthFailure() != test.auth || refused.Transient() != test.transient {
				t.Errorf("auth failure %v, transient %v", refused.AuthFailure(), refused.Transient())
			}
			wantRequests(t, evil, 0)
			wantRequests(t, f.tokens, 1)
			if _, err := get(t, rt, manifestURL); err == nil {
				t.Error("no error the second time")
			}
			if test.auth {
				wantRequests(t, f.tokens, 1) // a final answer is kept
			}
		})
	}
}

func status(code int, location, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if location != "" {
			w.Header().Set("Location", location)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func TestRealmIsRefused(t *testing.T) {
	for _, realm := range []string{
		"http://169.254.169.254/latest/meta-data/", "http://127.0.0.1:80/", "http://localhost/token", "http://[::1]/", "http://10.0.0.1/token", "ftp://auth.test/",
	} {
		f := newFakeRegistry(t, wants(static("Bearer tok"), realm), answer(`{"token":"tok"}`))
		_, err := get(t, f.transport(t, canaryLogin, nil), manifestURL)
		var refused *finding.Problem
		if !errors.As(err, &refused) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", realm, err)
		}
		wantRequests(t, f.tokens, 0)
	}
}

// elsewhere makes connections to some hosts appear to lead to other addresses.
func elsewhere(dial auth.DialFunc, ips map[string]string) auth.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		host, _, _ := net.SplitHostPort(addr)
		if ip := ips[host]; err == nil && ip != "" {
			conn = &farConn{conn, net.ParseIP(ip)}
		}
		return conn, err
	}
}

type farConn struct {
	net.Conn
	ip net.IP
}

func (c *farConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: c.ip, Port: 80} }

func TestRealmByName(t *testing.T) {
	for _, test := range []struct {
		name, registry, realm string
		refused               bool
	}{
		{"public registry, public realm", "203.0.113.1", "203.0.113.2", false},
		{"public registry, private realm", "203.0.113.1", "10.0.0.2", true},
		{"public registry, loopback realm", "203.0.113.1", "127.0.0.1", true},
		{"public registry, metadata server", "203.0.113.1", "169.254.169.254", true},
		{"inside registry, inside realm", "10.0.0.1", "10.0.0.2", false},
		{"inside registry, public realm", "10.0.0.1", "203.0.113.2", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFakeRegistry(t, wants(static("Bearer tok"), fakeRealm), answer(`{"token":"tok"}`))
			dial := elsewhere(f.network.Dial, map[string]string{"registry.test": test.registry, "auth.test": test.realm})
			_, err := get(t, f.transport(t, canaryLogin, dial), manifestURL)
			var refused *finding.Problem
			if errors.As(err, &refused) != test.refused || err != nil != test.refused {
				t.Errorf("got %v", err)
			}
			if test.refused {
				wantRequests(t, f.tokens, 0)
			}
		})
	}
}

func TestNothingForOtherHosts(t *testing.T) {
	f := newFakeRegistry(t, wants(static("Bearer tok"), fakeRealm), answer(`{"token":"tok"}`))
	blobs := f.serve(t, "blobs.test:80", wants(static("Bearer tok"), fakeRealm))
	port := f.serve(t, "registry.test:8080", wants(static("Bearer tok"), fakeRealm))
	rt := f.transport(t, canaryLogin, nil)
	wantGet(t, rt, manifestURL, 200)
	wantGet(t, rt, "http://blobs.test/v2/charts/podinfo/blobs/sha256:00", 401)
	wantGet(t, rt, "http://registry.test:8080/v2/charts/podinfo/blobs/sha256:00", 401)
	wantGet(t, rt, "http://user:canary@blobs.test/x", 401)
	for _, s := range []*helmtest.Server{blobs, port} {
		for _, r := range s.Log.All() {
			if r.Header.Get("Authorization") != "" {
				t.Errorf("%s got %s", s.Addr, r)
			}
		}
	}
	wantRequests(t, f.tokens, 1)
	t.Run("nor for this one when another has sent us", func(t *testing.T) {
		req, err := http.NewRequestWithContext(auth.Foreign(t.Context()), http.MethodGet, manifestURL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != 401 {
			t.Errorf("status %d", resp.StatusCode)
		}
	})
}

func TestScrub(t *testing.T) {
	f := newFakeRegistry(t, wants(static("Bearer tok-canary"), fakeRealm), answer(`{"token":"tok-canary"}`))
	rt := f.transport(t, auth.StaticLogin{Credential: auth.BasicCredential("alice", "p@ss/canary")}, nil)
	wantGet(t, rt, manifestURL, 200)
	scrub := rt.(interface{ Scrub(string) string }).Scrub
	got := scrub("p@ss/canary p%40ss%2Fcanary tok-canary YWxpY2U6cEBzcy9jYW5hcnk= innocent")
	if strings.Contains(got, "canary") || strings.Contains(got, "YWxp") || !strings.Contains(got, "innocent") {
		t.Error(got)
	}
}

func TestCancelledWhileAnotherAsks(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	f := newFakeRegistry(t, wants(static("Bearer tok"), fakeRealm), func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		_, _ = io.WriteString(w, `{"token":"tok"}`)
	})
	rt := f.transport(t, canaryLogin, nil)
	first := make(chan error)
	go func() {
		_, err := get(t, rt, manifestURL)
		first <- err
	}()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, manifestURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := rt.RoundTrip(req); err == nil {
		_ = resp.Body.Close()
		t.Errorf("got %s", resp.Status)
	} else if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
}
