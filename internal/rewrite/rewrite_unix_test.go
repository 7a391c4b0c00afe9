//go:build unix

package rewrite

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestReplaceKeeps(t *testing.T) {
	dir := t.TempDir()
	name := write(t, filepath.Join(dir, "a.yaml"), "old\n")
	if err := errors.Join(os.Chmod(name, 0o751), os.Symlink("a.yaml", filepath.Join(dir, "link.yaml"))); err != nil {
		t.Fatal(err)
	}
	if err := find(t, filepath.Join(dir, "link.yaml")).Replace([]byte("new\n")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(name)
	if err != nil || info.Mode() != 0o751 {
		t.Errorf("%v, %v", info, err)
	}
	if link, err := os.Readlink(filepath.Join(dir, "link.yaml")); link != "a.yaml" {
		t.Errorf("%q, %v", link, err)
	}
	if err := os.Chmod(name, 0o444); err != nil {
		t.Fatal(err)
	}
	if err := find(t, name).Replace([]byte("newer\n")); !errors.Is(err, ErrReadOnly) {
		t.Errorf("%v", err)
	}
}
