package rewrite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestReplaceAll edits all files or none: if a file has changed, the files before it get their old text again.
func TestReplaceAll(t *testing.T) {
	dir := t.TempDir()
	one, two := write(t, filepath.Join(dir, "one.yaml"), "one\n"), write(t, filepath.Join(dir, "two.yaml"), "two\n")
	list := []Replacement{{find(t, one), []byte("new one\n")}, {find(t, two), []byte("new two\n")}}
	write(t, two, "other\n")
	if err := ReplaceAll(list); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v", err)
	}
	for name, want := range map[string]string{one: "one\n", two: "other\n"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	list = []Replacement{{find(t, one), []byte("new one\n")}, {find(t, two), []byte("new two\n")}}
	if err := ReplaceAll(list); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{one: "new one\n", two: "new two\n"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if err := os.Remove(one); err != nil {
		t.Fatal(err)
	}
	if err := list[0].restore(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is gone is put back: %v", err)
	}
}
