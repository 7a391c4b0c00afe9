package git

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// githubWorld is a Git server that a GitHub App may read, at https://git.test, with the interface at https://api.test.
func githubWorld(t *testing.T) (*gitWorld, *helmtest.GitHub, *helmtest.Server, *Login) {
	t.Helper()
	w := newGitWorld(t, "")
	commit(t, w.git, "first", map[string]string{"a": "1"})
	g, err := helmtest.NewGitHub()
	if err != nil {
		t.Fatal(err)
	}
	h, err := helmtest.GitHTTP(w.root, "")
	if err != nil {
		t.Fatal(err)
	}
	w.ServeTLS(t, "git.test:443", w.ServerTLS(t, "git.test", false), g.Door(h))
	api := w.ServeTLS(t, "api.test:443", w.ServerTLS(t, "api.test", false), g)
	block, _ := pem.Decode(g.Key)
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := auth.NewTLS(w.Kit.CA.Cert, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	app := &GitHubApp{ID: helmtest.GitHubAppID, Installation: helmtest.GitHubInstallation, Key: key, API: &url.URL{Scheme: "https", Host: "api.test", Path: "/"}}
	return w, g, api, NewLogin(Keys{TLS: trusted, App: app})
}

func TestGitHubApp(t *testing.T) {
	w, g, api, l := githubWorld(t)
	const repo = "https://git.test/app.git"
	get := func(t *testing.T, now time.Time) (*fetch.Tree, error) {
		if s := fmt.Sprintf("%v %+v", l, *l); s != "REDACTED REDACTED" {
			t.Error(s)
		}
		w.Config.Now = func() time.Time { return now }
		return Checkout(t.Context(), w.Client(t), Options{URL: repo, Ref: Ref{Branch: "main"}, Login: l, TempDir: t.TempDir()})
	}
	for name, v := range map[string]struct {
		now  time.Time
		asks int
	}{"right clock": {time.Now(), 1}, "slow clock": {time.Now().Add(-24 * time.Hour), 2}, "fast clock": {time.Now().Add(24 * time.Hour), 2}} {
		t.Run(name, func(t *testing.T) {
			api.Log.Drain()
			tree, err := get(t, v.now)
			if err != nil {
				t.Fatal(err)
			}
			defer tree.Close()
			fetchtest.WantFiles(t, tree, "a=1")
			if n := len(api.Log.Drain()); n != v.asks {
				t.Errorf("%d requests", n)
			}
		})
	}
	t.Run("bad moment", func(t *testing.T) {
		api.Use(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusServiceUnavailable) }))
		api.Log.Drain()
		_, err := get(t, time.Now())
		if n := len(api.Log.Drain()); err == nil || !fetch.Transient(err) || n != 4 {
			t.Errorf("%v after %d requests", err, n)
		}
		for _, token := range g.Issued() {
			if strings.Contains(err.Error(), token) {
				t.Error(err)
			}
		}
	})
	t.Run("no token", func(t *testing.T) {
		api.Use(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, `{}`) }))
		if _, err := get(t, time.Now()); err == nil || fetch.Transient(err) || err.Error() != "failed to configure authentication options: the server's answer contains no token" {
			t.Errorf("error %v", err)
		}
	})
}

// TestGitHubAppSubmodules fetches submodules of a commit that is kept: the first one on the repository's own host that is not
// kept needs a token, which the next one uses as well. A submodule on another host gets no login.
func TestGitHubAppSubmodules(t *testing.T) {
	w, _, api, l := githubWorld(t)
	w.Config.Now = time.Now
	h, err := helmtest.GitHTTP(w.root, "")
	if err != nil {
		t.Fatal(err)
	}
	other := w.Serve(t, "other.test:80", h)
	modules := ""
	for name, url := range map[string]string{"one": "../one.git", "two": "https://git.test/two.git", "far": "http://other.test/far.git"} {
		pinned := commit(t, w.repo(t, name+".git"), "first", map[string]string{"name": name})
		modules += "[submodule \"" + name + "\"]\n\tpath = " + name + "\n\turl = " + url + "\n"
		run(t, w.git, "update-index", "--add", "--cacheinfo", "160000,"+pinned+","+name)
	}
	if err := w.git.Write(".gitmodules", modules); err != nil {
		t.Fatal(err)
	}
	run(t, w.git, "add", ".gitmodules")
	run(t, w.git, "commit", "-q", "-m", "x")
	c, err := cache.Open(t.TempDir(), cache.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const repo = "https://git.test/app.git"
	o := Options{URL: repo, Ref: Ref{Commit: strings.TrimSpace(run(t, w.git, "rev-parse", "HEAD"))}, Login: l}
	o.Memory.Cache, o.Memory.Scope = c, c.Scope([]string{repo}, nil, repo)
	w.mustClone(t, o)
	o.RecurseSubmodules = true
	for _, requests := range []int{1, 0} {
		api.Log.Drain()
		fetchtest.WantFiles(t, w.mustClone(t, o), ".gitmodules="+modules, "a=1", "far/name=far", "one/name=one", "two/name=two")
		if n := len(api.Log.Drain()); n != requests {
			t.Errorf("%d requests for tokens, want %d", n, requests)
		}
	}
	for _, r := range other.Log.All() {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("the login went to %s", r.Host)
		}
	}
}
