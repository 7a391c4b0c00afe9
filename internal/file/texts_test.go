package file

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWithTexts reads files with the texts of a context, under several names.
func TestWithTexts(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	name, other := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")
	for _, n := range []string{name, other} {
		if err := os.WriteFile(n, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx := WithTexts(t.Context(), map[string][]byte{name: []byte("new")})
	for n, want := range map[string]string{name: "new", filepath.Join(dir, ".", "x", "..", "a.yaml"): "new", other: "old"} {
		if got, err := Read(ctx, n, 100); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", n, got, err)
		}
	}
	if got, err := Read(t.Context(), name, 100); err != nil || string(got) != "old" {
		t.Errorf("%q, %v", got, err)
	}
}
