package load_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/edit"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/rewrite"
)

// FuzzPrivateLines checks that no line with the value of a Secret, or of a field named like a password, is shown, in any
// context and notation.
func FuzzPrivateLines(f *testing.F) {
	const canary = "hunter2hunter2"
	secrets := []string{
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  KEY: hunter2hunter2 # {\"$imagepolicy\": \"a:b\"}\n",
		"{apiVersion: v1, kind: Secret, stringData: {KEY: hunter2hunter2}}\n",
		"- {kind: Secret, data: {KEY: hunter2hunter2}}\n- x\n",
		"kind: List\nitems:\n- kind: Secret\n  stringData:\n    KEY: |\n      hunter2hunter2\n",
		"values:\n  KEY_password: hunter2hunter2\n  more: x\n",
		"values:\n  token:\n    KEY: hunter2hunter2\n",
		"env:\n- name: API_TOKEN\n  value: hunter2hunter2\n",
		"patches:\n- patch: |\n    kind: Secret\n    stringData: {KEY: hunter2hunter2}\n",
		"url: https://KEY:hunter2hunter2@host.test/\n",
	}
	for kind := range secrets {
		f.Add("a: b\n---\n", "dsn", kind)
		f.Add("a: \"", "x-y", kind)
		f.Add("a: |\n  b", "é", kind)
	}
	f.Add("a: b", "<", len(secrets)-1)
	f.Add("\r0", "0", 6)
	f.Add("a: b\r", "0", 6)
	f.Fuzz(func(t *testing.T, before, key string, kind int) {
		if kind < 0 || kind >= len(secrets) || strings.Contains(before+key, canary) || strings.ContainsAny(key, "\n\r:#{}[],&*!|>'\"%@`? /\\") || len(key) > 100 {
			return
		}
		text := before + "\n---\n" + strings.ReplaceAll(secrets[kind], "KEY", "k"+key)
		private := load.PrivateLinesOf(edit.Parse([]byte(text)))
		for i, line := range strings.Split(text, "\n") {
			if shown := private.Mask(i+1, line); strings.Contains(shown, canary) {
				t.Errorf("%q shows %q", text, shown)
			}
		}
	})
}

// TestPrivateLines masks the values of lines, and does not hide the lines beside them.
func TestPrivateLines(t *testing.T) {
	text := "a: one\nspec:\n  password: two\n  after: three\nenv:\n- name: API_TOKEN\n  value: four\n- name: plain\n  value: five\nlist:\n- |\n  kind: Secret\n  data: six\n- seven\n---\n" +
		"kind: Secret\nmetadata: {name: a}\n---\nkind: Secret\ndata:\n  k: eight\n---\na: [\nnine\n"
	private := load.PrivateLinesOf(edit.Parse([]byte(text)))
	hidden := map[string]bool{"two": true, "four": true, "six": true, "eight": true, "nine": true, "name: a": false}
	for _, shown := range []string{"one", "three", "five", "seven"} {
		hidden[shown] = false
	}
	for i, line := range strings.Split(text, "\n") {
		for value, want := range hidden {
			if !strings.Contains(line, value) {
				continue
			}
			if masked := private.Mask(i+1, line); strings.Contains(masked, value) == want {
				t.Errorf("%q is shown as %q", line, masked)
			}
			if shown := private.Shown(i+1, line, value); (shown != value) != want {
				t.Errorf("%s of %q is shown as %q", value, line, shown)
			}
		}
	}
}

// TestDiff hides lines around an edit that may contain a password, shows other lines, and masks passwords in edited lines.
func TestDiff(t *testing.T) {
	const before = "list:\n- https://user:hunter2@host.test/x\n- old\n- plain\n"
	name := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(name, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	file := rewrite.Find(t.Context(), rewrite.Options{Names: []string{name}}).Files[0]
	l := load.Reader{Console: console.New(io.Discard)}
	for old, want := range map[string]string{
		"old": "-- old\n+- new\n - plain\n", "plain": " - old\n-- plain\n+- new\n",
		"hunter2": " list:\n-- https://user:REDACTED@host.test/x\n+- https://user:REDACTED@host.test/x\n - old\n - plain\n",
	} {
		got := string(l.Diff(file, edit.Parse([]byte(before)), []byte(strings.Replace(before, old, "new", 1))))
		if !strings.HasSuffix(got, " @@\n"+want) {
			t.Errorf("%s: got\n%s\nwant\n%s", old, got, want)
		}
	}
}
