package git

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestOpenRevision reads a commit made by a real Git: modes, links that stay inside, and no links that lead out.
func TestOpenRevision(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.org"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	put := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name, target string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	run("init", "-q", "-b", "main")
	put("a/file", "one", 0o600)
	put("tool", "x", 0o700)
	link("a/inside", "file")
	link("outside", "../secret")
	link("absolute", "/etc/passwd")
	link("a/up", "../../secret")
	run("add", ".")
	run("update-index", "--add", "--cacheinfo", "160000,0123456789012345678901234567890123456789,lib")
	run("commit", "-q", "-m", "one")
	put("a/file", "two", 0o600)
	run("add", "a/file")
	run("commit", "-q", "-m", "two")

	top, ok := Top(filepath.Join(dir, "a", "nowhere"))
	if !ok || top != RealPath(dir) {
		t.Fatalf("top of %s: %s, %t", dir, top, ok)
	}
	tree, err := OpenRevision(t.Context(), top, "HEAD~1", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for name, want := range map[string]string{"a/file": "one", "a/inside": "one", "tool": "x"} {
		if got, err := os.ReadFile(filepath.Join(tree.Dir(), name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if info, err := os.Stat(filepath.Join(tree.Dir(), "tool")); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("tool: %v, %v", info, err)
	}
	for _, name := range []string{"outside", "absolute", "a/up"} {
		if _, err := os.Lstat(filepath.Join(tree.Dir(), name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s leads out: %v", name, err)
		}
	}
	if info, err := os.Stat(filepath.Join(tree.Dir(), "lib")); err != nil || !info.IsDir() {
		t.Errorf("submodule: %v", err)
	}
	if at, ok := Top(tree.Dir()); !ok || at != RealPath(tree.Dir()) {
		t.Errorf("what was written is no working tree: %s", at)
	}
	var missing *RevisionError
	if _, err := OpenRevision(t.Context(), top, "nowhere", t.TempDir()); !errors.As(err, &missing) || missing.Hint() == "" {
		t.Errorf("nowhere: %v", err)
	}
	if HasRevision(top, "nowhere") || !HasRevision(top, "main~1") {
		t.Error("revisions are not known")
	}
}
