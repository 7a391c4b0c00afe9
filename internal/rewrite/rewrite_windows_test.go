package rewrite

import (
	"os"
	"path/filepath"
	"testing"
)

// A file that another program has open is not replaced, and nothing is left beside it.
func TestReplaceInUse(t *testing.T) {
	name := write(t, filepath.Join(t.TempDir(), "a.yaml"), "old\n")
	f := find(t, name)
	open, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Replace([]byte("new\n")); err == nil {
		t.Error("no error")
	}
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "old\n" {
		t.Errorf("it is %q, %v", text, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(name), ".helmsrc-*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	if err := f.Replace([]byte("new\n")); err != nil {
		t.Error(err)
	}
}
