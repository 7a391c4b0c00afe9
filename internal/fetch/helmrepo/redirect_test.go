package helmrepo

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

func basic(t *testing.T) *auth.Identity {
	t.Helper()
	return fetchtest.Identity(t, map[string][]byte{"username": []byte("user"), "password": []byte("canary")}, nil)
}

func TestRedirects(t *testing.T) {
	chain := fetchtest.Redirects{}
	for i := range 11 {
		chain[fmt.Sprintf("/%d", i)] = fmt.Sprintf("/%d", i+1)
	}
	for _, tt := range []struct {
		name, start string
		handler     http.Handler
		err         string // empty: it arrives
	}{
		{"relative", "/x", fetchtest.Redirects{"/x": "y"}, ""},
		{"absolute", "/x", fetchtest.Redirects{"/x": "http://repo.test/y"}, ""},
		{"without scheme", "/x", fetchtest.Redirects{"/x": "//repo.test/y"}, ""},
		{"ten", "/1", chain, ""},
		{"eleven", "/0", chain, `Get "http://repo.test/0": stopped after 10 redirects`},
		{"loop", "/x", fetchtest.Redirects{"/x": "/y?canary", "/y": "/x"}, `Get "http://repo.test/x": redirect loop: back to http://repo.test/x`},
		{"to itself", "/x", fetchtest.Redirects{"/x": "/x"}, "redirect loop"},
		{"other scheme", "/x", fetchtest.Redirects{"/x": "ftp://u:canary@h/x"}, `redirect refused: scheme "ftp" not supported`},
		{"file", "/x", fetchtest.Redirects{"/x": "file:///etc/passwd"}, `redirect refused: scheme "file" not supported`},
		{"no host", "/x", fetchtest.Redirects{"/x": "http:///x"}, "redirected to a URL without a host"},
		{"not a URL", "/x", fetchtest.Redirects{"/x": "http://u:canary@[::1/x"}, "redirected to an invalid URL"},
		{"no location", "/x", fetchtest.Status(302), "failed to fetch http://repo.test/x : 302 Found"},
		{"not a redirect", "/x", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/y")
			w.WriteHeader(http.StatusCreated)
		}), "failed to fetch http://repo.test/x : 201 Created"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := fetchtest.NewWorld(t)
			w.Serve(t, "repo.test:80", tt.handler)
			var dst fetchtest.Buffer
			err := repository(w, t, "http://repo.test", basic(t), Options{}).Archive(t.Context(), candidate(tt.start), &dst, plenty)
			if tt.err == "" {
				if err != nil || dst.String() != "end" {
					t.Errorf("got %q, %v", &dst, err)
				}
				return
			}
			fetchtest.WantError(t, err, tt.err)
			if fetch.Transient(err) || fetch.AuthFailure(err) {
				t.Errorf("transient %v, auth %v", fetch.Transient(err), fetch.AuthFailure(err))
			}
		})
	}
}

func TestRedirectStatuses(t *testing.T) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		w := fetchtest.NewWorld(t)
		w.Serve(t, "repo.test:80", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/x" {
				http.Redirect(w, r, "/y", code)
			}
		}))
		if _, err := get(t, repository(w, t, "http://repo.test", nil, Options{})); err != nil {
			t.Errorf("%d: %v", code, err)
		}
	}
}

func TestRedirectFromHTTPS(t *testing.T) {
	w := fetchtest.NewWorld(t)
	plain := w.Serve(t, "repo.test:80", fetchtest.Files{"/x": "archive"})
	secure := w.ServeTLS(t, "repo.test:443", w.ServerTLS(t, "repo.test", false), fetchtest.Redirects{"/x": "http://repo.test/x?canary"})
	id := fetchtest.Identity(t, nil, map[string][]byte{"ca.crt": w.Kit.CA.Cert})
	_, err := get(t, repository(w, t, "https://repo.test", id, Options{PassCredentials: true}))
	fetchtest.WantError(t, err, `Get "https://repo.test/x": redirect from https to http refused: http://repo.test/x?REDACTED`)
	if len(plain.Log.All()) > 0 || fetch.Transient(err) {
		t.Error("followed")
	}
	secure.Use(fetchtest.Files{"/x": "archive"})
	plain.Use(fetchtest.Redirects{"/x": "https://repo.test/x"})
	if got, err := get(t, repository(w, t, "http://repo.test", id, Options{})); err != nil || got != "archive" {
		t.Errorf("the way up is not open: %q, %v", got, err)
	}
}

// Secrets for one host are sent to no other host: the password, the query, and the URL in Referer.
func TestCanariesStayAtHome(t *testing.T) {
	for _, tt := range []struct {
		name, url string
		pass      bool
		want      string // requests to other hosts, with their credentials
	}{
		{"home", "x", false, ""},
		{"redirect to another host", "away", false, "GET /y 200"},
		{"redirect to another port", "port", false, "GET /y 200"},
		{"redirect to a host below", "sub", false, "GET /y 200"},
		{"there and back", "return", false, "GET /back 302"},
		{"archive on another host", "http://other.test/z", false, "GET /z 200"},
		{"archive on another host, passed", "http://other.test/z", true, "GET /z 200 Basic user:canary"},
		{"archive on another host with its own user", "http://own:pw@other.test/z", false, "GET /z 200 Basic own:pw"},
		{"archive on another host without scheme", "//other.test/z", false, "GET /z 200"},
		// As with net/http: a redirect of the server keeps credentials on its own name, and drops them for other hosts.
		{"redirect to another host, passed", "away", true, "GET /y 200"},
		{"redirect to another port, passed", "port", true, "GET /y 200 Basic user:canary"},
		{"redirect to a host below, passed", "sub", true, "GET /y 200 Basic user:canary"},
		{"elsewhere and below, passed", "both", true, "GET /sub 302; GET /y 200"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := fetchtest.NewWorld(t)
			home := w.Serve(t, "repo.test:80", fetchtest.Redirects{
				"/away":   "http://other.test/y",
				"/port":   "http://repo.test:81/y",
				"/sub":    "http://sub.repo.test/y",
				"/return": "http://other.test/back",
				"/both":   "http://other.test/sub",
			})
			others := []*helmtest.Server{
				w.Serve(t, "other.test:80", fetchtest.Redirects{"/back": "http://repo.test/x?token=canary", "/sub": "http://sub.repo.test/y"}),
				w.Serve(t, "repo.test:81", fetchtest.Redirects{}),
				w.Serve(t, "sub.repo.test:80", fetchtest.Redirects{}),
			}
			var dst fetchtest.Buffer
			h := repository(w, t, "http://repo.test/?token=canary", basic(t), Options{PassCredentials: tt.pass})
			if err := h.Archive(t.Context(), candidate(tt.url), &dst, plenty); err != nil {
				t.Fatal(err)
			}
			for _, r := range home.Log.All() {
				if !strings.HasSuffix(r.String(), "Basic user:canary") || !strings.Contains(r.URI, "token=canary") {
					t.Errorf("home got %s", r)
				}
			}
			var got []helmtest.Request
			for _, s := range others {
				got = append(got, s.Log.All()...)
			}
			if text := strings.Join(helmtest.Strings(got), "; "); text != tt.want {
				t.Errorf("others got %q, want %q", text, tt.want)
			}
			for _, r := range got {
				r.Header.Del("Authorization")
				if text := fmt.Sprint(r); strings.Contains(strings.ReplaceAll(text, "user:canary", ""), "canary") {
					t.Errorf("others got %s", text)
				}
				if len(r.Header["Referer"]) > 0 {
					t.Errorf("others got Referer %q", r.Header["Referer"])
				}
			}
		})
	}
}

// With passCredentials the client certificate is sent wherever the password is sent, and otherwise to its own host only.
func TestCertificateStaysAtHome(t *testing.T) {
	w := fetchtest.NewWorld(t)
	w.ServeTLS(t, "repo.test:443", w.ServerTLS(t, "repo.test", true), fetchtest.Files{"/x": "archive"})
	w.ServeTLS(t, "other.test:443", w.ServerTLS(t, "other.test", true), fetchtest.Files{"/x": "archive"})
	id := fetchtest.Identity(t, nil, map[string][]byte{"ca.crt": w.Kit.CA.Cert, "tls.crt": w.Kit.Client.Cert, "tls.key": w.Kit.Client.Key})
	if _, err := get(t, repository(w, t, "https://repo.test", id, Options{})); err != nil {
		t.Error("at home:", err)
	}
	c := candidate("https://other.test/x")
	err := repository(w, t, "https://repo.test", id, Options{}).Archive(t.Context(), c, new(fetchtest.Buffer), plenty)
	if !fetch.AuthFailure(err) || fetch.Transient(err) {
		t.Errorf("auth %v, transient %v: %v", fetch.AuthFailure(err), fetch.Transient(err), err)
	}
	if err := repository(w, t, "https://repo.test", id, Options{PassCredentials: true}).Archive(t.Context(), c, new(fetchtest.Buffer), plenty); err != nil {
		t.Error("passed:", err)
	}
}

// If a server quotes a request and its credentials, they do not appear in the error.
func TestServerEchoesSecrets(t *testing.T) {
	const secret = "canary-secret"
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		w.WriteHeader(http.StatusTeapot)
		_, _ = fmt.Fprintf(w, "not for %s %s, %s,\x1b[31m\n %s", user, password, r.Header.Get("Authorization"), r.RequestURI)
	})
	malformed := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, password, _ := r.BasicAuth()
		_, _ = fmt.Fprintf(conn, "%s %s %s\r\n\r\n", password, r.Header.Get("Authorization"), r.RequestURI)
	})
	reason := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, password, _ := r.BasicAuth()
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 400 \x1b[31mno %s\r\nContent-Length: 0\r\n\r\n", password)
	})
	for name, handler := range map[string]http.Handler{"body": echo, "malformed": malformed, "reason": reason} {
		t.Run(name, func(t *testing.T) {
			w := fetchtest.NewWorld(t)
			w.Serve(t, "repo.test:80", handler)
			id := fetchtest.Identity(t, map[string][]byte{"username": []byte("user"), "password": []byte(secret)}, nil)
			_, err := get(t, repository(w, t, "http://repo.test/?token=canary%2Ftoken", id, Options{}))
			if err == nil || strings.Contains(err.Error(), "\x1b") {
				t.Fatalf("got %v", err)
			}
			if e, ok := err.(*fetch.StatusError); ok {
				fetchtest.WantNoCanary(t, e.Error(), *e)
			}
			for _, text := range []string{err.Error(), fmt.Sprintf("%q", err)} {
				if strings.Contains(text, "canary") {
					t.Errorf("shows the secret: %s", text)
				}
			}
		})
	}
}

func TestHints(t *testing.T) {
	w := fetchtest.NewWorld(t)
	for _, addr := range []string{"repo.test:80", "other.test:80"} {
		w.Serve(t, addr, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			code := 404
			_, _ = fmt.Sscanf(r.URL.Path, "/%d", &code)
			if to := r.URL.Query().Get("to"); to != "" {
				http.Redirect(w, r, to, http.StatusFound)
				return
			}
			w.WriteHeader(code)
		}))
	}
	w.ServeTLS(t, "repo.test:443", w.ServerTLS(t, "repo.test", false), fetchtest.Files{})
	anonymous, user := (*auth.Identity)(nil), basic(t)
	otherCA := fetchtest.Identity(t, nil, map[string][]byte{"ca.crt": w.Kit.Other.Cert})
	for _, tt := range []struct {
		name, url string
		id        *auth.Identity
		pass      bool
		want      string // a part of the hint
	}{
		{"401 without secretRef", "/401", anonymous, false, "spec.secretRef"},
		{"403 without secretRef", "/403", anonymous, false, "spec.secretRef"},
		{"401 with secretRef", "/401", user, false, "does not accept"},
		{"403 with secretRef", "/403", user, false, "permission"},
		{"401 on another host", "http://other.test/401", user, false, "spec.passCredentials: true"},
		{"403 on another host", "http://other.test/403", user, false, "the archive is on other.test, but the credentials are for repo.test"},
		{"401 on another host, passed", "http://other.test/401", user, true, "does not accept"},
		{"401 on another host, nothing to pass", "http://other.test/401", anonymous, false, "spec.secretRef"},
		{"401 after a redirect", "/302?to=http://other.test/401", user, false, "redirected to http://other.test:80, which does not get the credentials for http://repo.test:80"},
		{"404", "/404", user, false, ""},
		{"407", "/407", user, false, "the proxy requires credentials"},
		{"unknown CA", "https://repo.test/x", anonymous, false, "spec.certSecretRef"},
		{"wrong CA", "https://repo.test/x", otherCA, false, "did not issue"},
		{"plain HTTP", "https://other.test:80/x", anonymous, false, "http://"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := repository(w, t, "http://repo.test", tt.id, Options{PassCredentials: tt.pass}).Archive(t.Context(), candidate(tt.url), new(fetchtest.Buffer), plenty)
			if err == nil {
				t.Fatal("no error")
			}
			fetchtest.WantNoCanary(t, err)
			if got := fetchtest.HintOf(err); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("%v\nhint %q, want %q", err, got, tt.want)
			}
			isAuth := slices.ContainsFunc([]string{"401", "403", "CA"}, func(s string) bool { return strings.Contains(tt.name, s) })
			if fetch.AuthFailure(err) != isAuth || fetch.Transient(err) {
				t.Errorf("auth %v, transient %v: %v", fetch.AuthFailure(err), fetch.Transient(err), err)
			}
		})
	}
}
