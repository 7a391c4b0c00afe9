package plan

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnified applies diffs of random texts with Git.
func TestUnified(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range random.IntN(40) {
			b.WriteString(string(rune('a'+random.IntN(5))) + "\n")
		}
		if random.IntN(4) == 0 {
			b.WriteString("end")
		}
		return b.String()
	}
	for range 60 {
		dir := t.TempDir()
		old, now := text(), text()
		if old == "" || now == "" || old == now {
			continue
		}
		write(t, filepath.Join(dir, "file"), old)
		write(t, filepath.Join(dir, "patch"), Unified("a/file", "b/file", []byte(old), []byte(now)))
		git := exec.CommandContext(t.Context(), "git", "apply", "--unidiff-zero", "patch")
		git.Dir = dir
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\n%s\n---\n%s", err, out, old, now)
		}
		got, err := os.ReadFile(filepath.Join(dir, "file"))
		if err != nil || string(got) != now {
			t.Errorf("%q became %q, not %q (%v)", old, got, now, err)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestUnifiedBounds(t *testing.T) {
	if got := Unified("a", "b", []byte("x\n"), []byte("x\n")); got != "" {
		t.Errorf("equal texts differ: %q", got)
	}
	long := []byte(strings.Repeat("x\n", maxLines+1))
	if got := Unified("a", "b", long, []byte("y\n")); !strings.Contains(got, "too long to be compared: 50001 and 1 lines") {
		t.Errorf("long: %.200q", got)
	}
	many := func(s string) []byte { return []byte(strings.Repeat(s+"1\n"+s+"2\n", 2*maxEdits)) }
	got := Unified("a", "b", many("x"), many("y"))
	if !strings.Contains(got, "-x2\n+y1\n") {
		t.Errorf("texts without a common line are not replaced as a whole: %.200q", got)
	}
}

func TestFiles(t *testing.T) {
	got := Files(
		map[string][]byte{"gone": []byte("a\n"), "same": []byte("s"), "image": {0, 1}, "text": []byte("1\n2\n")},
		map[string][]byte{"new": []byte("b\n"), "same": []byte("s"), "image": {0, 2}, "text": []byte("1\n3\n")})
	want := "--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n" +
		"Binary files a/image and b/image differ\n" +
		"--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+b\n" +
		"--- a/text\n+++ b/text\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n"
	if got != want {
		t.Errorf("got:\n%s", got)
	}
	large := []byte(strings.Repeat("x", maxDiff) + "\n")
	if got := Files(nil, map[string][]byte{"a": []byte("1\n"), "b": large}); !strings.HasSuffix(got, "1 more files differ\n") {
		t.Errorf("a diff that is too large is not counted: %.100q", got)
	}
}
