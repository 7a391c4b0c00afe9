package verify_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// A blob store behind a redirect gets the request, and no credentials. Neither does the registry itself when another
// host sends the request back.
func TestRedirects(t *testing.T) {
	const user = "reader:secret"
	p := newWorld(t, "ggcr")
	key := newKey(t, "ecdsa")
	must(t, key.Sign(p.target()))
	open := p.registry.Handler
	p.registry.Handler = helmtest.BasicAuth(user, open)
	var seen []string
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		if r.URL.Query().Has("back") {
			http.Redirect(w, r, "http://"+p.host+r.URL.Path+"?signed=secret", http.StatusTemporaryRedirect)
			return
		}
		open.ServeHTTP(w, r)
	}))
	t.Cleanup(store.Close)

	p.subject.Transport = auth.NewRegistryTransport(auth.RegistryOptions{
		TransportOptions: auth.TransportOptions{Base: &url.URL{Scheme: "http", Host: p.host}, Getenv: func(string) string { return "" }},
		Logins:           auth.StaticLogin{Credential: auth.BasicCredential("reader", "secret")}, Tokens: auth.NewTokens(time.Now),
	})
	redirect := func(query string) {
		p.intercept(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/blobs/") || r.URL.RawQuery != "" {
				return false
			}
			http.Redirect(w, r, store.URL+r.URL.Path+query, http.StatusTemporaryRedirect)
			return true
		})
	}
	redirect("?x=1")
	_, err := verify.Cosign(timeout(t), p.subject, withKeys(key))
	must(t, err)

	redirect("?back")
	_, err = verify.Cosign(timeout(t), p.subject, withKeys(key))
	undecided(t, err)
	if err == nil || !strings.Contains(err.Error(), "401") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	if len(seen) != 2 || seen[0]+seen[1] != "" {
		t.Errorf("the blob store saw %q", seen)
	}
}

func TestRedirectsRefused(t *testing.T) {
	p := newWorld(t, "ggcr")
	for location, want := range map[string]string{
		"ftp://elsewhere.test/":      "redirect refused",
		"file:///etc/passwd":         "redirect refused",
		"http://" + p.host + "/v2/x": "",
		"/v2/loop":                   "redirect loop",
	} {
		p.intercept(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusFound)
			return true
		})
		_, err := verify.Cosign(timeout(t), p.subject, withKeys(newKey(t, "ecdsa")))
		undecided(t, err)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", location, err)
		}
	}
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+p.host+r.URL.Path, http.StatusFound)
	}))
	t.Cleanup(secure.Close)
	s := verify.Subject{
		Repository: strings.TrimPrefix(secure.URL, "https://") + "/charts/app", Digest: p.subject.Digest,
		Transport: secure.Client().Transport,
	}
	_, err := verify.Cosign(timeout(t), s, withKeys(newKey(t, "ecdsa")))
	undecided(t, err)
	if err == nil || !strings.Contains(err.Error(), "redirect from https to http refused") {
		t.Errorf("from https to http: %v", err)
	}
}
