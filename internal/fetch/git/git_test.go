package git

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// gitWorld has a Git server at git.test with the repository app.git.
type gitWorld struct {
	*fetchtest.World
	root   string
	git    *helmtest.Git
	server *helmtest.Server
}

const gitURL = "http://git.test/app.git"

func newGitWorld(t *testing.T, user string) *gitWorld {
	t.Helper()
	w := &gitWorld{World: fetchtest.NewWorld(t), root: t.TempDir()}
	w.git = w.repo(t, "app.git")
	h, err := helmtest.GitHTTP(w.root, user)
	if err != nil {
		t.Fatal(err)
	}
	w.server = w.Serve(t, "git.test:80", h)
	return w
}

// repo makes a repository that the server has.
func (w *gitWorld) repo(t *testing.T, name string) *helmtest.Git {
	t.Helper()
	g, err := helmtest.NewGit(filepath.Join(w.root, name))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func commit(t *testing.T, g *helmtest.Git, message string, files map[string]string) string {
	t.Helper()
	hash, err := g.Commit(message, files)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func run(t *testing.T, g *helmtest.Git, args ...string) string {
	t.Helper()
	out, err := g.Run(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// clone fetches, and fails the test if something is left behind.
func (w *gitWorld) clone(t *testing.T, o Options) (*fetch.Tree, error) {
	t.Helper()
	if o.URL == "" {
		o.URL = gitURL
	}
	o.TempDir = t.TempDir()
	tree, err := Checkout(t.Context(), w.Client(t), o)
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(o.TempDir, "*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	return tree, err
}

func (w *gitWorld) mustClone(t *testing.T, o Options) *fetch.Tree {
	t.Helper()
	tree, err := w.clone(t, o)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// routes are the ways to the same repository: both versions of the protocol, over HTTP and SSH.
func (w *gitWorld) routes(t *testing.T) map[string]Options {
	t.Helper()
	backend, err := helmtest.GitHTTP(w.root, "")
	if err != nil {
		t.Fatal(err)
	}
	w.Serve(t, "old.test:80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		r.Header.Del("Git-Protocol")
		backend.ServeHTTP(rw, r)
	}))
	routes := map[string]Options{"http": {URL: gitURL}, "old http": {URL: "http://old.test/app.git"}}
	for name, addr := range map[string]string{"ssh": "ssh.test:22", "old ssh": "oldssh.test:2222"} {
		s, o := w.ssh(t, addr, name == "ssh")
		o.Login = login(t, o.URL, map[string]string{"identity": string(s.Identity), "known_hosts": string(s.KnownHosts)})
		routes[name] = o
	}
	return routes
}

func (w *gitWorld) ssh(t *testing.T, addr string, version2 bool) (*helmtest.GitSSH, Options) {
	t.Helper()
	s, err := helmtest.ServeGitSSH(w.Network, addr, w.root, version2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, Options{URL: "ssh://" + strings.TrimSuffix(addr, ":22") + "/app.git"}
}

func TestGitRefs(t *testing.T) {
	w := newGitWorld(t, "")
	first := commit(t, w.git, "first\n\nbody", map[string]string{"a.txt": "1", "dir/b.txt": "1"})
	run(t, w.git, "tag", "v1.0.0")
	second := commit(t, w.git, "second", map[string]string{"a.txt": "2"})
	run(t, w.git, "tag", "-a", "-m", "annotated", "v1.1.0")
	run(t, w.git, "tag", "not-a-version")
	run(t, w.git, "branch", "feature/x", first)
	third := commit(t, w.git, "third", map[string]string{"a.txt": "3"})
	run(t, w.git, "tag", "v2.0.0-rc.1")
	run(t, w.git, "update-ref", "refs/pull/7/head", second)
	run(t, w.git, "branch", "master", second)

	routes := w.routes(t)
	for _, v := range []struct {
		name     string
		ref      Ref
		revision string
		content  string
	}{
		{"default branch is master", Ref{}, "master@sha1:" + second, "2"},
		{"branch", Ref{Branch: "main"}, "main@sha1:" + third, "3"},
		{"branch with a slash", Ref{Branch: "feature/x"}, "feature/x@sha1:" + first, "1"},
		{"tag", Ref{Tag: "v1.0.0", Branch: "main"}, "v1.0.0@sha1:" + first, "1"},
		{"annotated tag", Ref{Tag: "v1.1.0"}, "v1.1.0@sha1:" + second, "2"},
		{"semver", Ref{SemVer: ">=1.0.0", Tag: "v1.0.0"}, "v1.1.0@sha1:" + second, "2"},
		{"semver with pre-releases", Ref{SemVer: ">=1.0.0-0"}, "v2.0.0-rc.1@sha1:" + third, "3"},
		{"name", Ref{Name: "refs/pull/7/head", SemVer: "*"}, "refs/pull/7/head@sha1:" + second, "2"},
		{"name of an annotated tag", Ref{Name: "refs/tags/v1.1.0"}, "refs/tags/v1.1.0@sha1:" + second, "2"},
		{"commit", Ref{Commit: first, Name: "refs/heads/main"}, "sha1:" + first, "1"},
		{"commit of a branch", Ref{Commit: first, Branch: "main"}, "main@sha1:" + first, "1"},
	} {
		for way, o := range routes {
			t.Run(v.name+" over "+way, func(t *testing.T) {
				o.Ref = v.ref
				tree := w.mustClone(t, o)
				if tree.Revision != v.revision {
					t.Errorf("revision %s, want %s", tree.Revision, v.revision)
				}
				fetchtest.WantFiles(t, tree, "a.txt="+v.content, "dir/b.txt=1")
				o.Unless = v.revision
				again, err := w.clone(t, o)
				if err != nil || !again.Unchanged || again.Root != nil {
					t.Errorf("again: %+v, %v", again, err)
				}
			})
		}
	}
	t.Run("time and subject", func(t *testing.T) {
		tree := w.mustClone(t, Options{Ref: Ref{Tag: "v1.0.0"}})
		if tree.Subject != "first" || !tree.Time.Equal(helmtest.Created.Add(3600e9)) {
			t.Errorf("%q of %v", tree.Subject, tree.Time)
		}
	})
}

func TestGitRefErrors(t *testing.T) {
	w := newGitWorld(t, "")
	commit(t, w.git, "first", map[string]string{"a": "1"})
	run(t, w.git, "tag", "v1")
	w.repo(t, "empty.git")
	prefix := "failed to checkout and determine revision: "
	for _, v := range []struct {
		name, url string
		ref       Ref
		want      string
		hint      string
	}{
		{"no master", gitURL, Ref{}, prefix + `unable to clone 'http://git.test/app.git': couldn't find remote ref "refs/heads/master"`,
			"the default branch of the repository is main: set spec.ref.branch to the branch to use"},
		{"tag as branch", gitURL, Ref{Branch: "v1"}, prefix + `unable to clone 'http://git.test/app.git': couldn't find remote ref "refs/heads/v1"`,
			"there is a tag of this name: use spec.ref.tag: v1"},
		{"no tag", gitURL, Ref{Tag: "v9"}, prefix + `unable to clone 'http://git.test/app.git': couldn't find remote ref "refs/tags/v9"`, ""},
		{"no match", gitURL, Ref{SemVer: "^9"}, prefix + "no match found for semver: ^9", "0 of the repository's 1 tags are versions"},
		{"no commit", gitURL, Ref{Commit: strings.Repeat("1", 40)}, prefix + "unable to", ""},
		{"short commit", gitURL, Ref{Commit: "abc"}, prefix + "unable to resolve commit object for 'abc': not a SHA-1 hash of 40 digits", ""},
		{"empty", "http://git.test/empty.git", Ref{Branch: "main"}, "git repository is empty", ""},
		{"empty, by version", "http://git.test/empty.git", Ref{SemVer: "*"}, "git repository is empty", ""},
		{"no repository", "http://git.test/none.git", Ref{}, prefix + "unable to clone 'http://git.test/none.git': repository not found: 404 Not Found",
			"servers give the same answer for private repositories, which need a Secret in spec.secretRef"},
		{"no host", "http://other.test/none.git", Ref{}, prefix + "unable to clone 'http://other.test/none.git': ", ""},
	} {
		t.Run(v.name, func(t *testing.T) {
			_, err := w.clone(t, Options{URL: v.url, Ref: v.ref})
			if err == nil || !strings.HasPrefix(err.Error(), v.want) {
				t.Fatalf("error %v, want %s", err, v.want)
			}
			if hint := strings.Join(finding.Hints(err), "; "); v.hint != "" && hint != v.hint {
				t.Errorf("hint %v, want %q", hint, v.hint)
			}
			if fetch.Transient(err) != (v.name == "no host") {
				t.Errorf("transient is %v: %v", fetch.Transient(err), err)
			}
		})
	}
}

// §12 case: version ties are broken by the commit's time.
func TestGitSemVerTie(t *testing.T) {
	w := newGitWorld(t, "")
	commit(t, w.git, "first", map[string]string{"a": "1"})
	run(t, w.git, "tag", "1.0.0+z")
	young := commit(t, w.git, "second", map[string]string{"a": "2"})
	run(t, w.git, "tag", "-a", "-m", "x", "1.0.0+a")
	tree := w.mustClone(t, Options{Ref: Ref{SemVer: "1.x"}})
	if want := "1.0.0+a@sha1:" + young; tree.Revision != want {
		t.Errorf("revision %s, want %s", tree.Revision, want)
	}
}

func TestGitModes(t *testing.T) {
	w := newGitWorld(t, "")
	if err := w.git.Write("run.sh", "#!/bin/sh"); err != nil {
		t.Fatal(err)
	}
	run(t, w.git, "add", "run.sh")
	run(t, w.git, "update-index", "--chmod=+x", "run.sh")
	blob := run(t, w.git, "rev-parse", ":run.sh")
	run(t, w.git, "update-index", "--add", "--cacheinfo", "120000,"+blob+",link")
	if _, err := w.git.Run("commit", "-q", "-m", "x"); err != nil {
		t.Fatal(err)
	}
	fetchtest.WantFiles(t, w.mustClone(t, Options{Ref: Ref{Branch: "main"}}), "run.sh*=#!/bin/sh")
}

func TestGitSparse(t *testing.T) {
	w := newGitWorld(t, "")
	commit(t, w.git, "first", map[string]string{"a/x": "ax", "ab/x": "abx", "b/c/x": "bcx", "b/d/x": "bdx", "x": "x"})
	main := Ref{Branch: "main"}
	for _, filter := range []string{"false", "true"} {
		run(t, w.git, "config", "uploadpack.allowFilter", filter)
		t.Run("filter="+filter, func(t *testing.T) {
			fetchtest.WantFiles(t, w.mustClone(t, Options{Ref: main, SparseCheckout: []string{"./a", "b/c"}}), "a/x=ax", "b/c/x=bcx")
			fetchtest.WantFiles(t, w.mustClone(t, Options{Ref: main, Only: []string{"b/c/x", "x", "nope"}}), "b/c/x=bcx", "x=x")
			fetchtest.WantFiles(t, w.mustClone(t, Options{Ref: main, Only: []string{"x"}, SparseCheckout: []string{"a"}}), "a/x=ax")
			fetchtest.WantFiles(t, w.mustClone(t, Options{Ref: main, Only: []string{}}))
		})
	}
	_, err := w.clone(t, Options{Ref: main, SparseCheckout: []string{"a", "nope"}})
	want := "failed to sparse checkout directories : sparse checkout dir 'nope' does not exist in repository: no such file or directory"
	if err == nil || err.Error() != want {
		t.Errorf("error %v", err)
	}
	if _, err := w.clone(t, Options{Ref: main, SparseCheckout: []string{"../../etc"}}); err == nil {
		t.Error("no error")
	}
}

// The pack of one directory must not hold the files of other directories.
func TestGitPartialDownload(t *testing.T) {
	w := newGitWorld(t, "")
	run(t, w.git, "config", "uploadpack.allowFilter", "true")
	commit(t, w.git, "first", map[string]string{"chart/x": "x", "big": noise(4 << 20)})
	commit(t, w.git, "second", map[string]string{"old": noise(4 << 20)})
	commit(t, w.git, "third", map[string]string{"old": "small"})
	read := func(o Options) (bytes int64) {
		var last int64
		ctx := fetch.With(t.Context(), func(p fetch.Progress) {
			if p.Read < last {
				bytes += last
			}
			last = p.Read
		})
		o.URL, o.Ref, o.TempDir = gitURL, Ref{Branch: "main"}, t.TempDir()
		tree, err := Checkout(ctx, w.Client(t), o)
		if err != nil {
			t.Fatal(err)
		}
		defer tree.Close()
		return bytes + last
	}
	if n := read(Options{SparseCheckout: []string{"chart"}}); n > 64<<10 {
		t.Errorf("%d bytes for one directory", n)
	}
	if n := read(Options{Only: []string{"chart", "missing"}}); n > 64<<10 {
		t.Errorf("%d bytes for what is wanted now", n)
	}
	if n := read(Options{}); n < 4<<20 || n > 6<<20 {
		t.Errorf("%d bytes for one commit", n)
	}
}

func noise(n int) string {
	b := make([]byte, n)
	x := uint64(88172645463325252)
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return string(b)
}

func TestGitLimits(t *testing.T) {
	w := newGitWorld(t, "")
	files := map[string]string{}
	for i := range 40 {
		files[fmt.Sprintf("f%d", i)] = strings.Repeat(fmt.Sprint(i), 3000)
	}
	commit(t, w.git, "first", files)
	for name, l := range map[string]Limits{
		"pack":     {Pack: 500},
		"objects":  {Objects: 10},
		"object":   {Object: 1000},
		"unpacked": {Unpacked: 50_000},
		"files":    {Files: 10},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.clone(t, Options{Ref: Ref{Branch: "main"}, Limits: l})
			if finding.CodeOf(err) != finding.TooLarge || fetch.Transient(err) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestGitTransient(t *testing.T) {
	w := newGitWorld(t, "")
	commit(t, w.git, "first", map[string]string{"a": "1"})
	good, err := helmtest.GitHTTP(w.root, "")
	if err != nil {
		t.Fatal(err)
	}
	failures := 2
	w.server.Use(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && failures > 0 {
			failures--
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		good.ServeHTTP(rw, r)
	}))
	fetchtest.WantFiles(t, w.mustClone(t, Options{Ref: Ref{Branch: "main"}}), "a=1")
	failures = 100
	_, err = w.clone(t, Options{Ref: Ref{Branch: "main"}})
	if !fetch.Transient(err) || failures != 96 {
		t.Errorf("error %v after %d attempts", err, 100-failures)
	}
}

func TestGitTimeout(t *testing.T) {
	w := newGitWorld(t, "")
	ctx, cancel := context.WithCancelCause(t.Context())
	w.server.Use(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel(fetch.NewTimeout("--timeout", 1))
		<-r.Context().Done()
	}))
	_, err := Checkout(ctx, w.Client(t), Options{URL: gitURL, TempDir: t.TempDir()})
	if !errors.Is(err, context.DeadlineExceeded) || !fetch.Transient(err) {
		t.Errorf("error %v", err)
	}
}
