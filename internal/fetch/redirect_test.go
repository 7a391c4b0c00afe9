package fetch

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

func basic(t *testing.T) *auth.Identity {
	t.Helper()
	return identity(t, map[string][]byte{"username": []byte("user"), "password": []byte("canary")}, nil)
}

func TestRedirects(t *testing.T) {
	chain := redirects{}
	for i := range 11 {
		chain[fmt.Sprintf("/%d", i)] = fmt.Sprintf("/%d", i+1)
	}
	for _, tt := range []struct {
		name, start string
		handler     http.Handler
		err         string // empty: it arrives
	}{
		{"relative", "/x", redirects{"/x": "y"}, ""},
		{"absolute", "/x", redirects{"/x": "http://repo.test/y"}, ""},
		{"without scheme", "/x", redirects{"/x": "//repo.test/y"}, ""},
		{"ten", "/1", chain, ""},
		{"eleven", "/0", chain, `Get "http://repo.test/0": stopped after 10 redirects`},
		{"loop", "/x", redirects{"/x": "/y?canary", "/y": "/x"}, `Get "http://repo.test/x": redirect loop: back to http://repo.test/x`},
		{"to itself", "/x", redirects{"/x": "/x"}, "redirect loop"},
		{"other scheme", "/x", redirects{"/x": "ftp://u:canary@h/x"}, `redirect refused: scheme "ftp" not supported`},
		{"file", "/x", redirects{"/x": "file:///etc/passwd"}, `redirect refused: scheme "file" not supported`},
		{"no host", "/x", redirects{"/x": "http:///x"}, "redirected to a URL without a host"},
		{"not a URL", "/x", redirects{"/x": "http://u:canary@[::1/x"}, "redirected to an invalid URL"},
		{"no location", "/x", status(302), "failed to fetch http://repo.test/x : 302 Found"},
		{"not a redirect", "/x", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/y")
			w.WriteHeader(http.StatusCreated)
		}), "failed to fetch http://repo.test/x : 201 Created"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.serve(t, "repo.test:80", tt.handler)
			var dst buffer
			err := w.repository(t, "http://repo.test", basic(t), HTTPOptions{}).Archive(t.Context(), candidate(tt.start), &dst, plenty)
			if tt.err == "" {
				if err != nil || dst.String() != "end" {
					t.Errorf("got %q, %v", &dst, err)
				}
				return
			}
			wantError(t, err, tt.err)
			if Transient(err) || AuthFailure(err) {
				t.Errorf("transient %v, auth %v", Transient(err), AuthFailure(err))
			}
		})
	}
}

func TestRedirectStatuses(t *testing.T) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		w := newWorld(t)
		w.serve(t, "repo.test:80", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/x" {
				http.Redirect(w, r, "/y", code)
			}
		}))
		if _, err := get(t, w.repository(t, "http://repo.test", nil, HTTPOptions{})); err != nil {
			t.Errorf("%d: %v", code, err)
		}
	}
}

func TestRedirectFromHTTPS(t *testing.T) {
	w := newWorld(t)
	plain := w.serve(t, "repo.test:80", files{"/x": "archive"})
	secure := w.serveTLS(t, "repo.test:443", w.serverTLS(t, "repo.test", false), redirects{"/x": "http://repo.test/x?canary"})
	id := identity(t, nil, map[string][]byte{"ca.crt": w.kit.CA.Cert})
	_, err := get(t, w.repository(t, "https://repo.test", id, HTTPOptions{PassCredentials: true}))
	wantError(t, err, `Get "https://repo.test/x": redirect from https to http refused: http://repo.test/x?REDACTED`)
	if len(plain.Log.All()) > 0 || Transient(err) {
		t.Error("followed")
	}
	secure.Use(files{"/x": "archive"})
	plain.Use(redirects{"/x": "https://repo.test/x"})
	if got, err := get(t, w.repository(t, "http://repo.test", id, HTTPOptions{})); err != nil || got != "archive" {
		t.Errorf("the way up is not open: %q, %v", got, err)
	}
}

// What one host is told reaches no other: not the password, not the query, not where the reader comes from.
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
		// As with net/http: a redirect of the server keeps credentials on its own name, and loses them elsewhere.
		{"redirect to another host, passed", "away", true, "GET /y 200"},
		{"redirect to another port, passed", "port", true, "GET /y 200 Basic user:canary"},
		{"redirect to a host below, passed", "sub", true, "GET /y 200 Basic user:canary"},
		{"elsewhere and below, passed", "both", true, "GET /sub 302; GET /y 200"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			home := w.serve(t, "repo.test:80", redirects{
				"/away":   "http://other.test/y",
				"/port":   "http://repo.test:81/y",
				"/sub":    "http://sub.repo.test/y",
				"/return": "http://other.test/back",
				"/both":   "http://other.test/sub",
			})
			others := []*helmtest.Server{
				w.serve(t, "other.test:80", redirects{"/back": "http://repo.test/x?token=canary", "/sub": "http://sub.repo.test/y"}),
				w.serve(t, "repo.test:81", redirects{}),
				w.serve(t, "sub.repo.test:80", redirects{}),
			}
			var dst buffer
			h := w.repository(t, "http://repo.test/?token=canary", basic(t), HTTPOptions{PassCredentials: tt.pass})
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

// With passCredentials the client certificate goes where the password goes, and else it stays at home too.
func TestCertificateStaysAtHome(t *testing.T) {
	w := newWorld(t)
	w.serveTLS(t, "repo.test:443", w.serverTLS(t, "repo.test", true), files{"/x": "archive"})
	w.serveTLS(t, "other.test:443", w.serverTLS(t, "other.test", true), files{"/x": "archive"})
	id := identity(t, nil, map[string][]byte{"ca.crt": w.kit.CA.Cert, "tls.crt": w.kit.Client.Cert, "tls.key": w.kit.Client.Key})
	if _, err := get(t, w.repository(t, "https://repo.test", id, HTTPOptions{})); err != nil {
		t.Error("at home:", err)
	}
	c := candidate("https://other.test/x")
	err := w.repository(t, "https://repo.test", id, HTTPOptions{}).Archive(t.Context(), c, new(buffer), plenty)
	if !AuthFailure(err) || Transient(err) {
		t.Errorf("auth %v, transient %v: %v", AuthFailure(err), Transient(err), err)
	}
	if err := w.repository(t, "https://repo.test", id, HTTPOptions{PassCredentials: true}).Archive(t.Context(), c, new(buffer), plenty); err != nil {
		t.Error("passed:", err)
	}
}

// A server that quotes what it was asked for, and with which credentials, does not bring them into an error.
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
			w := newWorld(t)
			w.serve(t, "repo.test:80", handler)
			id := identity(t, map[string][]byte{"username": []byte("user"), "password": []byte(secret)}, nil)
			_, err := get(t, w.repository(t, "http://repo.test/?token=canary%2Ftoken", id, HTTPOptions{}))
			if err == nil || strings.Contains(err.Error(), "\x1b") {
				t.Fatalf("got %v", err)
			}
			if e, ok := err.(*StatusError); ok {
				wantNoCanary(t, e.Snippet, *e)
				if name == "body" && e.Snippet != "not for user REDACTED, Basic REDACTED,[31m /x?token=REDACTED" {
					t.Errorf("snippet %q", e.Snippet)
				}
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
	w := newWorld(t)
	for _, addr := range []string{"repo.test:80", "other.test:80"} {
		w.serve(t, addr, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			code := 404
			_, _ = fmt.Sscanf(r.URL.Path, "/%d", &code)
			if to := r.URL.Query().Get("to"); to != "" {
				http.Redirect(w, r, to, http.StatusFound)
				return
			}
			w.WriteHeader(code)
		}))
	}
	w.serveTLS(t, "repo.test:443", w.serverTLS(t, "repo.test", false), files{})
	anonymous, user := (*auth.Identity)(nil), basic(t)
	otherCA := identity(t, nil, map[string][]byte{"ca.crt": w.kit.Other.Cert})
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
		{"407", "/407", user, false, "the proxy wants credentials"},
		{"unknown CA", "https://repo.test/x", anonymous, false, "spec.certSecretRef"},
		{"wrong CA", "https://repo.test/x", otherCA, false, "did not issue"},
		{"plain HTTP", "https://other.test:80/x", anonymous, false, "http://"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := w.repository(t, "http://repo.test", tt.id, HTTPOptions{PassCredentials: tt.pass}).Archive(t.Context(), candidate(tt.url), new(buffer), plenty)
			if err == nil {
				t.Fatal("no error")
			}
			wantNoCanary(t, err)
			if got := hintOf(err); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("%v\nhint %q, want %q", err, got, tt.want)
			}
			isAuth := slices.ContainsFunc([]string{"401", "403", "CA"}, func(s string) bool { return strings.Contains(tt.name, s) })
			if AuthFailure(err) != isAuth || Transient(err) {
				t.Errorf("auth %v, transient %v: %v", AuthFailure(err), Transient(err), err)
			}
		})
	}
}
