package git

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/helmtest"
	"golang.org/x/crypto/ssh"
)

// login has the keys of a Secret that can be read: see credential.
func login(t *testing.T, _ string, data map[string]string) *Login {
	t.Helper()
	k := Keys{Username: data["username"], Password: data["password"], KnownHosts: []byte(data["known_hosts"])}
	if data["bearerToken"] != "" {
		k = Keys{Bearer: data["bearerToken"]}
	}
	var err error
	if k.TLS, err = auth.NewTLS([]byte(data["ca.crt"]), []byte(data["tls.crt"]), []byte(data["tls.key"])); err != nil {
		t.Fatal(err)
	}
	if data["identity"] != "" {
		if k.Signer, err = ssh.ParsePrivateKey([]byte(data["identity"])); err != nil {
			t.Fatal(err)
		}
	}
	return NewLogin(k)
}

func TestGitBasicAuth(t *testing.T) {
	w := newGitWorld(t, "user:s3cret")
	commit(t, w.git, "first", map[string]string{"a": "1"})
	ref := Ref{Branch: "main"}
	for name, l := range map[string]*Login{
		"anonymous": nil,
		"wrong":     login(t, gitURL, map[string]string{"username": "user", "password": "wr0ngpass"}),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.clone(t, Options{Ref: ref, Login: l})
			if !fetch.AuthFailure(err) || fetch.Transient(err) || !strings.Contains(strings.Join(finding.Hints(err), "; "), "spec.secretRef") {
				t.Errorf("error %v", err)
			}
			if want := "failed to checkout and determine revision: unable to clone 'http://git.test/app.git': authentication required: 401 Unauthorized"; err.Error() != want {
				t.Errorf("error %v", err)
			}
		})
	}
	w.mustClone(t, Options{Ref: ref, Login: login(t, gitURL, map[string]string{"username": "user", "password": "s3cret"})})
	w.mustClone(t, Options{Ref: ref, URL: "http://user:s3cret@git.test/app.git"})
	_, err := w.clone(t, Options{Ref: ref, URL: "http://user:wr0ngpass@git.test/app.git"})
	if err == nil || strings.Contains(err.Error(), "wr0ngpass") {
		t.Errorf("error %v", err)
	}
	w.server.Use(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", advertisementType)
		fmt.Fprint(rw, "001e# service=git-upload-pack\n00000015ERR not wr0ngpass")
	}))
	_, err = w.clone(t, Options{Ref: ref, URL: "http://user:wr0ngpass@git.test/app.git"})
	if err == nil || strings.Contains(err.Error(), "wr0ngpass") || !strings.Contains(err.Error(), "remote: not REDACTED") {
		t.Errorf("error %v", err)
	}
}

func TestGitBearer(t *testing.T) {
	w := newGitWorld(t, "")
	commit(t, w.git, "first", map[string]string{"a": "1"})
	good, err := helmtest.GitHTTP(w.root, "")
	if err != nil {
		t.Fatal(err)
	}
	w.server.Use(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t0ken" {
			http.Error(rw, "no t0ken: "+r.Header.Get("Authorization"), http.StatusForbidden)
			return
		}
		good.ServeHTTP(rw, r)
	}))
	// A bearer token wins over a user name.
	l := login(t, gitURL, map[string]string{"bearerToken": "t0ken", "username": "u", "password": "p"})
	w.mustClone(t, Options{Ref: Ref{Branch: "main"}, Login: l})
	_, err = w.clone(t, Options{Login: login(t, gitURL, map[string]string{"bearerToken": "b4dtoken"})})
	if !fetch.AuthFailure(err) || strings.Contains(fmt.Sprintf("%v %+v", err, err), "b4dtoken") {
		t.Errorf("error %v", err)
	}
}

func TestGitTLS(t *testing.T) {
	w := newGitWorld(t, "")
	commit(t, w.git, "first", map[string]string{"a": "1"})
	h, err := helmtest.GitHTTP(w.root, "")
	if err != nil {
		t.Fatal(err)
	}
	w.ServeTLS(t, "tls.test:443", w.ServerTLS(t, "tls.test", false), h)
	w.ServeTLS(t, "mutual.test:443", w.ServerTLS(t, "mutual.test", true), h)
	ca, cert, key := string(w.Kit.CA.Cert), string(w.Kit.Client.Cert), string(w.Kit.Client.Key)
	for _, v := range []struct {
		name, host string
		data       map[string]string
		ok         bool
	}{
		{"no authority", "tls.test", nil, false},
		{"another authority", "tls.test", map[string]string{"ca.crt": string(w.Kit.Other.Cert)}, false},
		{"ca.crt", "tls.test", map[string]string{"ca.crt": ca}, true},
		{"no client certificate", "mutual.test", map[string]string{"ca.crt": ca}, false},
		{"client certificate", "mutual.test", map[string]string{"ca.crt": ca, "tls.crt": cert, "tls.key": key}, true},
	} {
		t.Run(v.name, func(t *testing.T) {
			url := "https://" + v.host + "/app.git"
			_, err := w.clone(t, Options{URL: url, Ref: Ref{Branch: "main"}, Login: login(t, url, v.data)})
			if v.ok && err != nil || !v.ok && (!fetch.AuthFailure(err) || fetch.Transient(err)) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Decision C5: the target of a redirect gets no credentials, and no redirect leads from https to http.
func TestGitRedirects(t *testing.T) {
	w := newGitWorld(t, "")
	commit(t, w.git, "first", map[string]string{"a": "1"})
	other := w.Serve(t, "other.test:80", http.NotFoundHandler())
	h, err := helmtest.GitHTTP(w.root, "")
	if err != nil {
		t.Fatal(err)
	}
	other.Use(h)
	to := func(base string) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, base+r.URL.RequestURI(), http.StatusMovedPermanently)
		})
	}
	old := w.Serve(t, "old.test:80", to("http://other.test"))
	ref := Ref{Branch: "main"}
	l := login(t, "http://old.test/app.git", map[string]string{"username": "user", "password": "s3cret"})
	w.mustClone(t, Options{URL: "http://old.test/app.git", Ref: ref, Login: l})
	if r := old.Log.All(); len(r) != 1 || r[0].Header.Get("Authorization") == "" {
		t.Errorf("the repository's host was asked %v", helmtest.Strings(r))
	}
	if len(other.Log.All()) < 2 {
		t.Errorf("the other host was asked %v", helmtest.Strings(other.Log.All()))
	}
	for _, r := range other.Log.All() {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("credentials went to %s: %v", r.Host, r)
		}
	}
	w.ServeTLS(t, "secure.test:443", w.ServerTLS(t, "secure.test", false), to("http://other.test"))
	l = login(t, "https://secure.test/app.git", map[string]string{"ca.crt": string(w.Kit.CA.Cert)})
	if _, err := w.clone(t, Options{URL: "https://secure.test/app.git", Ref: ref, Login: l}); err == nil || !strings.Contains(err.Error(), "https to http") {
		t.Errorf("error %v", err)
	}
	old.Use(to("http://old.test/x"))
	if _, err := w.clone(t, Options{URL: "http://old.test/app.git"}); err == nil || fetch.Transient(err) {
		t.Errorf("error %v", err)
	}
}

func TestGitProxy(t *testing.T) {
	w := newGitWorld(t, "")
	commit(t, w.git, "first", map[string]string{"a": "1"})
	p := w.Serve(t, "proxy.test:3128", helmtest.Proxy(w.Network, "u:pr0xy"))
	ref := Ref{Branch: "main"}
	proxy, err := auth.NewProxy("default/proxy", map[string][]byte{
		"address": []byte("http://proxy.test:3128"), "username": []byte("u"), "password": []byte("pr0xy"),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.mustClone(t, Options{Ref: ref, Proxy: proxy})
	if n := len(p.Log.Drain()); n == 0 {
		t.Error("the proxy of proxySecretRef was not used")
	}
	w.Config.Getenv = func(name string) string {
		return map[string]string{"HTTP_PROXY": "http://u:pr0xy@proxy.test:3128"}[name]
	}
	w.mustClone(t, Options{Ref: ref})
	if n := len(p.Log.Drain()); n == 0 {
		t.Error("the proxy of the environment was not used")
	}
	for _, data := range []map[string][]byte{{}, {"address": []byte("ftp://x")}, {"address": []byte("%")}} {
		if _, err := auth.NewProxy("default/proxy", data); err == nil {
			t.Errorf("%q is a proxy", data)
		}
	}
	if s := fmt.Sprintf("%v %+v %#v %s", proxy, proxy, *proxy, proxy); strings.Contains(s, "pr0xy") {
		t.Error(s)
	}
}

func TestGitNoRepository(t *testing.T) {
	w := newGitWorld(t, "")
	for name, h := range map[string]http.HandlerFunc{
		"web page": func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "<html>hello") },
		"garbage": func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", advertisementType)
			fmt.Fprint(rw, "zzzz")
		},
		"complaint": func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", advertisementType)
			fmt.Fprint(rw, "001e# service=git-upload-pack\n0000000fERR \x1b[31mno")
		},
		"forever": func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", advertisementType)
			for i := 0; ; i++ {
				if _, err := fmt.Fprintf(rw, "ffef%065515d", i); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.server.Use(h)
			_, err := w.clone(t, Options{})
			if err == nil || fetch.Transient(err) || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestGitSSHTrust(t *testing.T) {
	w := newGitWorld(t, "")
	commit(t, w.git, "first", map[string]string{"a": "1"})
	s, o := w.ssh(t, "ssh.test:22", true)
	other, _ := w.ssh(t, "other.test:22", true)
	stranger, _, err := helmtest.NewSSHKey("")
	if err != nil {
		t.Fatal(err)
	}
	swapped := strings.Replace(string(other.KnownHosts), "other.test", "ssh.test", 1)
	o.Ref.Branch = "main"
	for _, v := range []struct {
		name, identity, hosts string
		want                  string
	}{
		{"right", string(s.Identity), string(s.KnownHosts), ""},
		{"among others", string(s.Identity), string(other.KnownHosts) + "# comment\n" + string(s.KnownHosts), ""},
		{"unknown host", string(s.Identity), string(other.KnownHosts), "ssh.test is not in known_hosts"},
		{"another host key", string(s.Identity), swapped, "the key of ssh.test differs from known_hosts"},
		{"revoked", string(s.Identity), "@revoked " + string(s.KnownHosts), "is revoked"},
		{"unknown identity", string(stranger), string(s.KnownHosts), "the server does not accept the identity"},
		{"bad known_hosts", string(s.Identity), "ssh.test ssh-ed25519 ????", "'known_hosts' in the Secret of spec.secretRef cannot be read"},
	} {
		t.Run(v.name, func(t *testing.T) {
			o := o
			o.Login = login(t, o.URL, map[string]string{"identity": v.identity, "known_hosts": v.hosts})
			_, err := w.clone(t, o)
			if v.want == "" {
				if err != nil || s.User != "git" {
					t.Errorf("user %q, error %v", s.User, err)
				}
				return
			}
			if !fetch.AuthFailure(err) || fetch.Transient(err) || !strings.Contains(err.Error(), v.want) {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("nothing", func(t *testing.T) {
		if _, err := w.clone(t, o); !fetch.AuthFailure(err) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("no repository", func(t *testing.T) {
		o := o
		o.URL = "ssh://me@ssh.test/none.git"
		o.Login = login(t, o.URL, map[string]string{"identity": string(s.Identity), "known_hosts": string(s.KnownHosts)})
		_, err := w.clone(t, o)
		if err == nil || fetch.Transient(err) || s.User != "me" || strings.Contains(err.Error(), "unexpected EOF") {
			t.Errorf("user %q, error %v", s.User, err)
		}
	})
}

func TestGitSubmodules(t *testing.T) {
	w := newGitWorld(t, "user:s3cret")
	lib := w.repo(t, "lib.git")
	commit(t, lib, "first", map[string]string{"lib.txt": "old"})
	pinned := commit(t, lib, "second", map[string]string{"lib.txt": "pinned"})
	commit(t, lib, "third", map[string]string{"lib.txt": "new"})
	h, err := helmtest.GitHTTP(w.root, "")
	if err != nil {
		t.Fatal(err)
	}
	other := w.Serve(t, "other.test:80", h)
	module := func(url string) {
		if err := w.git.Write(".gitmodules", "[submodule \"lib\"]\n\tpath = sub/lib\n\turl = "+url+"\n"); err != nil {
			t.Fatal(err)
		}
		run(t, w.git, "add", ".gitmodules")
		run(t, w.git, "update-index", "--add", "--cacheinfo", "160000,"+pinned+",sub/lib")
		run(t, w.git, "commit", "-q", "--allow-empty", "-m", "x")
	}
	o := Options{Ref: Ref{Branch: "main"}, RecurseSubmodules: true,
		Login: login(t, gitURL, map[string]string{"username": "user", "password": "s3cret"})}
	for _, url := range []string{"../lib.git", "http://git.test/lib.git", "http://other.test/lib.git"} {
		t.Run(url, func(t *testing.T) {
			module(url)
			fetchtest.WantFiles(t, w.mustClone(t, o), ".gitmodules=[submodule \"lib\"]\n\tpath = sub/lib\n\turl = "+url+"\n", "sub/lib/lib.txt=pinned")
		})
	}
	for _, r := range other.Log.All() {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("credentials went to %s: %v", r.Host, r)
		}
	}
	for _, url := range []string{"file://" + w.root + "/lib.git", w.root + "/lib.git", "http://git.test/none.git", "ext::sh -c date"} {
		t.Run("refused "+url, func(t *testing.T) {
			module(url)
			if _, err := w.clone(t, o); err == nil {
				t.Error("no error")
			}
		})
	}
	t.Run("not asked for", func(t *testing.T) {
		o := o
		o.RecurseSubmodules = false
		if tree := w.mustClone(t, o); tree.Files != 1 {
			t.Errorf("%q", fetchtest.List(t, tree))
		}
	})
}
