package git

import (
	"errors"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
)

// H12: a name of unknown kind is resolved as Git resolves it.
func TestAnyRef(t *testing.T) {
	w := newGitWorld(t, "")
	first := commit(t, w.git, "first", map[string]string{"a.txt": "1"})
	run(t, w.git, "tag", "v1")
	run(t, w.git, "tag", "-a", "-m", "annotated", "v1.1")
	second := commit(t, w.git, "second", map[string]string{"a.txt": "2"})
	run(t, w.git, "branch", "v1", second)
	run(t, w.git, "branch", "feature/x", first)
	run(t, w.git, "branch", second[:8], first)
	run(t, w.git, "branch", first, second)
	run(t, w.git, "update-ref", "refs/pull/7/head", first)

	routes := w.routes(t)
	for name, v := range map[string]struct{ ref, revision, content string }{
		"a tag before a branch":        {"v1", "v1@sha1:" + first, "1"},
		"an annotated tag":             {"v1.1", "v1.1@sha1:" + first, "1"},
		"a branch":                     {"main", "main@sha1:" + second, "2"},
		"a branch with a slash":        {"feature/x", "feature/x@sha1:" + first, "1"},
		"a whole name":                 {"refs/heads/v1", "refs/heads/v1@sha1:" + second, "2"},
		"a name of another kind":       {"refs/pull/7/head", "refs/pull/7/head@sha1:" + first, "1"},
		"a commit before a branch":     {first, "sha1:" + first, "1"},
		"a short commit":               {first[:7], "sha1:" + first, "1"},
		"a branch before short commit": {second[:8], second[:8] + "@sha1:" + first, "1"},
	} {
		for way, o := range routes {
			t.Run(name+" over "+way, func(t *testing.T) {
				o.Ref = Ref{Any: v.ref}
				tree := w.mustClone(t, o)
				if tree.Revision != v.revision {
					t.Errorf("revision %s, want %s", tree.Revision, v.revision)
				}
				fetchtest.WantFiles(t, tree, "a.txt="+v.content)
			})
		}
	}
}

// H11, H12: the error for a missing name has a hint if the repository has a similar one.
func TestAnyRefErrors(t *testing.T) {
	w := newGitWorld(t, "")
	commit(t, w.git, "first", map[string]string{"a.txt": "1"})
	w.repo(t, "empty.git")
	prefix := "failed to checkout and determine revision: "
	for name, v := range map[string]struct{ url, ref, want, hint string }{
		"no such name":         {gitURL, "master", prefix + "bad revision 'master'", "ref: main"},
		"no such commit":       {gitURL, strings.Repeat("1", 40), prefix + "unable to", ""},
		"no such short commit": {gitURL, "1111111", prefix + "bad revision '1111111'", "ref: main"},
		"too short":            {gitURL, "111", prefix + "bad revision '111'", "ref: main"},
		"no commit at all":     {"http://git.test/empty.git", "main", "git repository is empty", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.clone(t, Options{URL: v.url, Ref: Ref{Any: v.ref}})
			if err == nil || !strings.HasPrefix(err.Error(), v.want) {
				t.Fatalf("error %v, want %s", err, v.want)
			}
			var hinted interface{ Hint() string }
			if v.hint != "" && (!errors.As(err, &hinted) || hinted.Hint() != v.hint) {
				t.Errorf("%v has no hint %q", err, v.hint)
			}
		})
	}
}
