package file

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOutside(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"repo/.git", "repo/sub", "outside/.git"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"repo/in", "repo/sub/in", "outside/file"} {
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"repo/file": "../outside/file", "repo/dir": "../outside", "repo/sub/up": "..", "repo/nowhere": "none",
		"repo/sub/same": "../in", "repo/sub/out": "../../outside", "repo/twice": "dir/file", "alias": "repo", "repo/absolute": filepath.Join(dir, "outside", "file"),
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for name, want := range map[string]bool{
		"repo/in": false, "repo/sub/same": false, "repo/sub/up/in": false, "alias/in": false, "alias": false,
		"repo/nowhere": false, "repo/none": false, "outside/file": false, "repo/../outside/file": false, "repo/sub/up/../outside/file": false,
		"repo/file": true, "repo/dir": true, "repo/dir/file": true, "repo/twice": true, "repo/absolute": true,
		"alias/file": true, "repo/sub/up/dir/file": true, "repo/sub/out": true, "repo/sub/out/file": true,
	} {
		if got := Outside(name); got != want {
			t.Errorf("Outside(%s) = %v", name, got)
		}
		if got := Outside(filepath.Join(dir, ".") + "/" + name); got != want {
			t.Errorf("Outside of the absolute %s = %v", name, got)
		}
	}
	// The name of the working directory may contain a link.
	t.Chdir(filepath.Join(dir, "alias", "sub"))
	for name, want := range map[string]bool{"same": false, "up/in": false, "out": true, "../file": true} {
		if got := Outside(name); got != want {
			t.Errorf("Outside(%s) in a directory over a link = %v", name, got)
		}
	}
}
