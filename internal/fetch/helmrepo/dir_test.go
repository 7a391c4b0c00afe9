package helmrepo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/index"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

// directory writes files, by slash path, into a new directory.
func directory(t *testing.T, content map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func openDir(t *testing.T, dir string) *Directory {
	t.Helper()
	d, err := OpenDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func packaged(t *testing.T, name, version string) string {
	t.Helper()
	archive, err := helmtest.NewChart(name, version).Package()
	if err != nil {
		t.Fatal(err)
	}
	return string(archive)
}

func TestDirWithIndex(t *testing.T) {
	dir := directory(t, map[string]string{"index.yaml": small, "foo-1.0.0.tgz": "archive"})
	d := openDir(t, dir)
	var dst fetchtest.Buffer
	offsets, _, err := d.Index(t.Context(), &dst, plenty, "")
	if err != nil || dst.String() != small {
		t.Fatalf("got %q, %v", &dst, err)
	}
	list := candidates(t, small, offsets)
	if err := d.Archive(t.Context(), list[0], &dst, plenty); err != nil || dst.String() != "archive" {
		t.Errorf("got %q, %v", &dst, err)
	}
	_, _, err = d.Index(t.Context(), &dst, int64(len(small))-1, "")
	fetchtest.WantError(t, err, "index exceeds the maximum index file size of")
	fetchtest.WantError(t, d.Archive(t.Context(), list[0], &dst, 6), "size of chart 'foo-1.0.0.tgz' exceeds '6' bytes limit")

	list[0].Digest = sha256Of("other")
	err = d.Archive(t.Context(), list[0], &dst, plenty)
	var integrity interface{ Integrity() bool }
	if !errors.As(err, &integrity) || !integrity.Integrity() {
		t.Errorf("digest: got %v", err)
	}
	d.Digests = fetch.DigestWarn
	var warnings []string
	ctx := fetch.With(t.Context(), func(w error) { warnings = append(warnings, w.Error()) })
	if err := d.Archive(ctx, list[0], &dst, plenty); err != nil || len(warnings) != 1 {
		t.Errorf("digest: got %v, warnings %q", err, warnings)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := d.Index(ctx, &dst, plenty, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: got %v", err)
	}
	if err := d.Archive(t.Context(), resolve.Candidate{Name: "foo", Version: "1.0.0"}, new(fullDisk), plenty); !errors.Is(err, errFull) {
		t.Errorf("full disk: got %v", err)
	}
}

func TestDirArchive(t *testing.T) {
	d := openDir(t, directory(t, map[string]string{
		"foo-1.0.0.tgz":        "top",
		"charts/foo-1.0.0.tgz": "below",
		"charts/other.tgz":     "other",
		"a b+c.tgz":            "odd",
		"dir.tgz/x":            "",
	}))
	for _, tt := range []struct{ name, url, want, err string }{
		{"relative", "foo-1.0.0.tgz", "top", ""},
		{"below", "charts/foo-1.0.0.tgz", "below", ""},
		{"relative, elsewhere", "packages/foo-1.0.0.tgz", "top", ""},
		{"absolute", "https://u:canary@example.com/charts/foo-1.0.0.tgz?canary", "top", ""},
		{"absolute, escaped", "https://example.com/a%20b+c.tgz", "odd", ""},
		{"from the root", "/charts/foo-1.0.0.tgz", "below", ""},
		{"climbing", "../charts/foo-1.0.0.tgz", "below", ""},
		{"climbing out", "../../../../etc/passwd", "top", ""},
		{"other host", "//example.com/x/foo-1.0.0.tgz", "top", ""},
		{"registry", "oci://example.com/charts/foo:1.0.0", "top", ""},
		{"not a URL", "https://h:p/%zz", "top", ""},
		{"none", "", "top", ""},
		{"missing by URL", "other.tgz", "top", ""},
		{"directory", "dir.tgz", "", "open dir.tgz: is a directory"},
		{"the root", "/", "top", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := candidate(tt.url)
			if tt.url == "" {
				c.URLs = nil
			}
			var dst fetchtest.Buffer
			err := d.Archive(t.Context(), c, &dst, plenty)
			if tt.err != "" {
				fetchtest.WantError(t, err, tt.err)
			} else if err != nil || dst.String() != tt.want {
				t.Errorf("got %q, %v", &dst, err)
			}
		})
	}
	err := d.Archive(t.Context(), resolve.Candidate{Name: "bar", Version: "2.0.0", URLs: []string{"https://u:canary@h/x/bar.tgz?canary"}}, new(fetchtest.Buffer), plenty)
	fetchtest.WantError(t, err, "archive of chart 'bar' 2.0.0 is not in the directory, looked for bar.tgz, bar-2.0.0.tgz: file does not exist")
	if !errors.Is(err, fs.ErrNotExist) || fetch.Transient(err) {
		t.Errorf("transient %v: %v", fetch.Transient(err), err)
	}
}

func TestDirGeneratesIndex(t *testing.T) {
	content := map[string]string{
		"foo-1.0.0.tgz":       packaged(t, "foo", "1.0.0"),
		"foo-1.1.0+b.tgz":     packaged(t, "foo", "1.1.0+b"),
		"bar.tgz":             packaged(t, "bar", "0.1.0"),
		"broken.tgz":          "not an archive",
		"notes.txt":           "",
		"below/baz-1.0.0.tgz": packaged(t, "baz", "1.0.0"),
	}
	if runtime.GOOS != "windows" {
		content["1.0:foo.tgz"] = packaged(t, "foo", "0.9.0")
	}
	dir := directory(t, content)
	d := openDir(t, dir)
	var warnings []string
	ctx := fetch.With(t.Context(), func(w error) { warnings = append(warnings, w.Error()) })
	var first, second fetchtest.Buffer
	offsets, _, err := d.Index(ctx, &first, plenty, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "broken.tgz is left out of the index: ") || strings.Contains(warnings[0], dir) {
		t.Errorf("warnings %q", warnings)
	}
	// Another directory with the same files, at another time, gives the same index.
	if _, _, err := openDir(t, directory(t, content)).Index(t.Context(), &second, plenty, ""); err != nil || first.String() != second.String() {
		t.Errorf("not deterministic: %v\n%s\n%s", err, &first, &second)
	}
	ix := index.Open(strings.NewReader(first.String()), offsets)
	if charts := strings.Join(ix.Charts(), " "); charts != "bar foo" {
		t.Errorf("charts %s", charts)
	}
	list := candidates(t, first.String(), offsets)
	if want := len(content) - 4; len(list) != want {
		t.Errorf("%d versions of foo, want %d", len(list), want)
	}
	for _, c := range list {
		var dst fetchtest.Buffer
		if err := d.Archive(t.Context(), c, &dst, plenty); err != nil || sha256Of(dst.String()) != c.Digest {
			t.Errorf("%s: digest %q, %v", c.Version, c.Digest, err)
		}
	}
	_, _, err = d.Index(t.Context(), &second, 100, "")
	fetchtest.WantError(t, err, "index exceeds the maximum index file size of 100 bytes")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := d.Index(canceled, &second, plenty, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: got %v", err)
	}
}

func TestDirWithoutCharts(t *testing.T) {
	for _, content := range []map[string]string{{}, {"broken.tgz": "x"}, {"below/index.yaml": small}} {
		if _, _, err := openDir(t, directory(t, content)).Index(t.Context(), new(fetchtest.Buffer), plenty, ""); !errors.Is(err, errNoCharts) {
			t.Errorf("%v: got %v", content, err)
		}
	}
	if _, err := OpenDirectory(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := OpenDirectory(filepath.Join(directory(t, map[string]string{"x": ""}), "x")); err == nil {
		t.Error("opened a file as a directory")
	}
}
