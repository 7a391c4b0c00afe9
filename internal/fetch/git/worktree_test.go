package git

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

func openTree(t *testing.T, dir string, o WorktreeOptions) *fetch.Tree {
	t.Helper()
	o.TempDir = t.TempDir()
	tree, err := OpenWorktree(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
	return tree
}

func newWorktree(t *testing.T) *helmtest.Git {
	t.Helper()
	g, err := helmtest.NewGit(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	commit(t, g, "first\n\nmore", map[string]string{
		"chart/Chart.yaml": "name: x", "chart/.gitignore": "*.tgz\n!keep.tgz\n", "run.sh": "#!", ".gitignore": "/build/\n*.log\n",
	})
	return g
}

func write(t *testing.T, g *helmtest.Git, name, content string) {
	t.Helper()
	if err := g.Write(name, content); err != nil {
		t.Fatal(err)
	}
}

func TestWorktreeClean(t *testing.T) {
	for _, v := range []struct {
		name   string
		change func(t *testing.T, g *helmtest.Git)
		clean  bool
	}{
		{"nothing", func(*testing.T, *helmtest.Git) {}, true},
		{"written again", func(t *testing.T, g *helmtest.Git) { write(t, g, "run.sh", "#!") }, true},
		{"ignored", func(t *testing.T, g *helmtest.Git) {
			write(t, g, "build/x", "1")
			write(t, g, "chart/a.log", "1")
			write(t, g, "chart/dep.tgz", "1")
		}, true},
		{"nested repository", func(t *testing.T, g *helmtest.Git) {
			other, err := helmtest.NewGit(filepath.Join(g.Dir, "other"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, other, "x", "1")
		}, true},
		{"same size", func(t *testing.T, g *helmtest.Git) { write(t, g, "run.sh", "##") }, false},
		{"staged", func(t *testing.T, g *helmtest.Git) { write(t, g, "run.sh", "new"); run(t, g, "add", "run.sh") }, false},
		{"untracked", func(t *testing.T, g *helmtest.Git) { write(t, g, "chart/keep.tgz", "1") }, false},
		{"removed", func(t *testing.T, g *helmtest.Git) { write(t, g, "run.sh", "") }, false},
		{"executable", func(t *testing.T, g *helmtest.Git) {
			if err := os.Chmod(filepath.Join(g.Dir, "run.sh"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"became a link", func(t *testing.T, g *helmtest.Git) {
			write(t, g, "run.sh", "")
			if err := os.Symlink("/etc/passwd", filepath.Join(g.Dir, "run.sh")); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(v.name, func(t *testing.T) {
			g := newWorktree(t)
			v.change(t, g)
			tree := openTree(t, g.Dir, WorktreeOptions{})
			revision := "main@sha1:" + run(t, g, "rev-parse", "HEAD")
			if v.clean && (tree.Revision != revision || tree.Subject != "first" || tree.Time.IsZero()) {
				t.Errorf("%s %q %v, want %s", tree.Revision, tree.Subject, tree.Time, revision)
			}
			if !v.clean && (!strings.HasPrefix(tree.Revision, "sha256:") || !tree.Time.IsZero()) {
				t.Errorf("revision %s %v", tree.Revision, tree.Time)
			}
			if git := run(t, g, "status", "--porcelain", "--ignore-submodules"); v.name != "nested repository" && (git == "") != v.clean {
				t.Errorf("git finds %q", git)
			}
			if again := openTree(t, g.Dir, WorktreeOptions{}); again.Revision != tree.Revision {
				t.Errorf("then %s", again.Revision)
			}
		})
	}
}

// Git itself lists the files that belong to a working tree.
func TestWorktreeFiles(t *testing.T) {
	g := newWorktree(t)
	for name, content := range map[string]string{
		"a/.gitignore": "*\n!/b/\n!/b/**\n", "a/x": "1", "a/b/y": "1", "a/b/z.log": "1",
		"build/x": "1", "sub/build/x": "1", "sub/x.log": "1", "space name": "1", "chart/keep.tgz": "1", "chart/no.tgz": "1",
		"c/.gitignore": "# comment\n\\#x\ntrailing \nfoo/*\n!foo/bar\n", "c/#x": "1", "c/trailing": "1", "c/foo/baz": "1", "c/foo/bar": "1",
		"info.txt": "1", "home.txt": "1", "artifacts/gitrepository/x": "1",
	} {
		write(t, g, name, content)
	}
	write(t, g, ".git/info/exclude", "info.txt\n")
	write(t, g, "build/tracked", "1")
	run(t, g, "add", "-f", "build/tracked")
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".config", "git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".config", "git", "ignore"), []byte("home.txt\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	g.Env = []string{"HOME=" + home}
	want := strings.Split(run(t, g, "-c", "core.quotepath=false", "ls-files", "-co", "--exclude-standard"), "\n")
	want = slices.DeleteFunc(want, func(name string) bool { return strings.HasPrefix(name, "artifacts/") })
	slices.Sort(want)
	tree := openTree(t, g.Dir, WorktreeOptions{
		SkipDirs: []string{filepath.Join(g.Dir, "artifacts"), t.TempDir()},
		Getenv:   func(name string) string { return map[string]string{"HOME": home}[name] },
	})
	var got []string
	for _, f := range fetchtest.List(t, tree) {
		name, _, _ := strings.Cut(f, "=")
		got = append(got, name)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("files %q\nwant  %q", got, want)
	}
}

func TestWorktreeHeads(t *testing.T) {
	g := newWorktree(t)
	hash := run(t, g, "rev-parse", "HEAD")
	run(t, g, "checkout", "-q", "-b", "feature/x")
	if r := openTree(t, g.Dir, WorktreeOptions{}).Revision; r != "feature/x@sha1:"+hash {
		t.Error(r)
	}
	run(t, g, "checkout", "-q", "--detach")
	if r := openTree(t, g.Dir, WorktreeOptions{}).Revision; r != "sha1:"+hash {
		t.Error(r)
	}
	linked := filepath.Join(t.TempDir(), "linked")
	run(t, g, "worktree", "add", "-q", linked, "-b", "linked")
	if r := openTree(t, linked, WorktreeOptions{}).Revision; r != "linked@sha1:"+hash {
		t.Error(r)
	}
	fresh, err := helmtest.NewGit(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, fresh, "x", "1")
	tree := openTree(t, fresh.Dir, WorktreeOptions{})
	if fetchtest.WantFiles(t, tree, "x=1"); !strings.HasPrefix(tree.Revision, "sha256:") {
		t.Error(tree.Revision)
	}
}

func TestWorktreePlain(t *testing.T) {
	g := newWorktree(t)
	write(t, g, "build/x", "1")
	dir := t.TempDir()
	for name, content := range map[string]string{"a/x": "1", ".gitignore": "a\n", "b": "2"} {
		write(t, &helmtest.Git{Dir: dir}, name, content)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, o := range []WorktreeOptions{{}, {Plain: true}} {
		tree := openTree(t, dir, o)
		fetchtest.WantFiles(t, tree, ".gitignore=a\n", "a/x=1", "b=2")
		if !strings.HasPrefix(tree.Revision, "sha256:") {
			t.Error(tree.Revision)
		}
	}
	if tree := openTree(t, g.Dir, WorktreeOptions{Plain: true}); tree.Files != 5 || !strings.HasPrefix(tree.Revision, "sha256:") {
		t.Errorf("%q %s", fetchtest.List(t, tree), tree.Revision)
	}
	_, err := OpenWorktree(t.Context(), filepath.Join(dir, "nope"), WorktreeOptions{TempDir: t.TempDir()})
	if err == nil || strings.Count(err.Error(), "nope") != 1 {
		t.Errorf("error %v", err)
	}
}

func TestWorktreeSubmodules(t *testing.T) {
	lib := newWorktree(t)
	g := newWorktree(t)
	run(t, g, "submodule", "add", "-q", lib.Dir, "sub/lib")
	commit(t, g, "submodule", nil)
	clean := "main@sha1:" + run(t, g, "rev-parse", "HEAD")
	for recurse, want := range map[bool]int{false: 5, true: 9} {
		o := WorktreeOptions{RecurseSubmodules: recurse}
		if tree := openTree(t, g.Dir, o); tree.Revision != clean || tree.Files != want {
			t.Errorf("recurse %v: %s with %q", recurse, tree.Revision, fetchtest.List(t, tree))
		}
	}
	write(t, g, "sub/lib/run.sh", "changed")
	if r := openTree(t, g.Dir, WorktreeOptions{RecurseSubmodules: true}).Revision; !strings.HasPrefix(r, "sha256:") {
		t.Error(r)
	}
	if r := openTree(t, g.Dir, WorktreeOptions{}).Revision; r != clean {
		t.Error(r)
	}
}
