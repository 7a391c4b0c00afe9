//go:build unix

package helmrepo

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
)

// Links are as good as files, unless they lead out.
func TestDirStaysInside(t *testing.T) {
	outside := directory(t, map[string]string{"secret.tgz": packaged(t, "canary", "1.0.0"), "index.yaml": small})
	dir := directory(t, map[string]string{"real.tgz": "archive"})
	for link, target := range map[string]string{
		"foo-1.0.0.tgz": filepath.Join(outside, "secret.tgz"),
		"inside.tgz":    "real.tgz",
		"index.yaml":    filepath.Join(outside, "index.yaml"),
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	d := openDir(t, dir)
	var dst fetchtest.Buffer
	if err := d.Archive(t.Context(), candidate("inside.tgz"), &dst, plenty); err != nil || dst.String() != "archive" {
		t.Errorf("a link inside: got %q, %v", &dst, err)
	}
	err := d.Archive(t.Context(), candidate("foo-1.0.0.tgz"), &dst, plenty)
	if err == nil || strings.Contains(err.Error(), outside) || strings.Contains(err.Error(), dir) {
		t.Errorf("a link outside: got %v", err)
	}
	if _, _, err := d.Index(t.Context(), &dst, plenty, ""); err == nil || strings.Contains(err.Error(), dir) {
		t.Errorf("an index outside: got %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "index.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Index(t.Context(), &dst, plenty, ""); !errors.Is(err, errNoCharts) {
		t.Errorf("archives outside: got %v, %q", err, &dst)
	}
}

// These pipes have no writer: opening one would wait forever.
func TestDirDoesNotOpenPipes(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"index.yaml", "foo.tgz"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := openDir(t, dir)
	_, _, err := d.Index(t.Context(), new(fetchtest.Buffer), plenty, "")
	fetchtest.WantError(t, err, "open index.yaml: not a regular file")
	fetchtest.WantError(t, d.Archive(t.Context(), candidate("foo.tgz"), new(fetchtest.Buffer), plenty), "open foo.tgz: not a regular file")
}
