package tree

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	godigest "github.com/opencontainers/go-digest"
)

func archive(t testing.TB, root *os.Root, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Archive(t.Context(), &b, root, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// entries describes the entries of an archive.
func entries(t *testing.T, data []byte) []string {
	t.Helper()
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	tr := tar.NewReader(zr)
	var list []string
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || h.Format == tar.FormatPAX && len(h.Name) < 100 {
			t.Errorf("header of %s: %+v", h.Name, h)
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%c %04o %d %s %s", h.Typeflag, h.Mode, h.ModTime.Unix(), h.Name, content))
	}
}

func TestArchive(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // no file is executable
	}
	root := planted(t, map[string]string{
		"b.txt":       "b",
		"a/z":         "z",
		"a/b/c":       "c",
		"a-first":     "sorted by element, so after the directory",
		"run*":        "#!",
		"empty/":      "",
		"link":        "-> b.txt",
		"outside":     "-> /etc/passwd",
		"dangling":    "-> nowhere",
		"linked-dir":  "-> a",
		".sourcefile": "",
	})
	got := entries(t, archive(t, root, Options{}))
	want := []string{
		"5 0750 0 . ",
		"0 0600 0 .sourcefile ",
		"5 0750 0 a ",
		"5 0750 0 a/b ",
		"0 0600 0 a/b/c c",
		"0 0600 0 a/z z",
		"0 0600 0 a-first sorted by element, so after the directory",
		"0 0600 0 b.txt b",
		"5 0750 0 empty ",
		"0 0700 0 run #!",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestArchiveTime(t *testing.T) {
	root := planted(t, map[string]string{"a": ""})
	at := time.Date(2026, 1, 2, 3, 4, 5, 999, time.FixedZone("", 3600))
	for _, e := range entries(t, archive(t, root, Options{ModTime: at})) {
		if !strings.Contains(e, fmt.Sprintf(" %d ", at.Unix())) {
			t.Error(e)
		}
	}
}

// The same files make the same bytes, whatever their owner, place and times.
func TestArchiveIsReproducible(t *testing.T) {
	files := map[string]string{"a/b": "1", "a/c": "2", "d": "3"}
	first, second := t.TempDir(), t.TempDir()
	plant(t, first, files)
	for _, name := range []string{"d", "a/c", "a/b"} {
		plant(t, second, map[string]string{name: files[name]})
		p := filepath.Join(second, filepath.FromSlash(name))
		if err := os.Chtimes(p, time.Unix(1, 0), time.Unix(2, 0)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p, 0o440); err != nil {
			t.Fatal(err)
		}
	}
	one, two := archive(t, rootOf(t, first), Options{}), archive(t, rootOf(t, second), Options{})
	if !bytes.Equal(one, two) {
		t.Error("the archives differ")
	}
	sum := func(dir string) string {
		d, err := Sum(t.Context(), godigest.SHA256, rootOf(t, dir), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return d.String()
	}
	before := sum(first)
	if before != sum(second) {
		t.Error("the sums differ")
	}
	plant(t, first, map[string]string{"d": "4"})
	if before == sum(first) {
		t.Error("the sum does not notice an edit")
	}
}

func TestArchiveFilter(t *testing.T) {
	root := planted(t, map[string]string{
		"keep/a":        "",
		"drop/a":        "",
		"drop/b":        "",
		"all/a":         "",
		"all/sub/a":     "",
		"drop/sub/keep": "",
	})
	var asked []string
	filter := func(name string, dir bool) Choice {
		asked = append(asked, name)
		switch {
		case name == "all":
			return DropAll
		case name == "drop", name == "drop/a", name == "drop/sub":
			return Drop
		}
		return Keep
	}
	var got []string
	for _, e := range entries(t, archive(t, root, Options{Filter: filter})) {
		got = append(got, strings.Fields(e)[3])
	}
	if want := []string{".", "drop/b", "drop/sub/keep", "keep", "keep/a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if slices.Contains(asked, "all/a") {
		t.Errorf("asked for %q", asked)
	}
}

func TestArchiveLimits(t *testing.T) {
	root := planted(t, map[string]string{"a": "12345", "b/c": "12345", "d": ""})
	const stream = 512 + 2*1024 + 2*512 + 1024 // the root, two files, a directory, an empty file, the end
	for _, tt := range []struct {
		limits Limits
		text   string
	}{
		{Limits{Entries: 4, File: 5, Total: stream}, ""},
		{Limits{Entries: 3}, "too many files and directories"},
		{Limits{File: 4}, `file "a" has 5 bytes, more than 4`},
		{Limits{Total: stream - 1}, fmt.Sprintf("archive has more than %d bytes without compression", stream-1)},
	} {
		var b bytes.Buffer
		err := Archive(t.Context(), &b, root, Options{Limits: tt.limits})
		if tt.text != "" {
			wantLimit(t, err, tt.text)
			continue
		}
		if err != nil {
			t.Error(err)
		}
		// An archive within the limits can be unpacked.
		if err := Unpack(t.Context(), &b, rootOf(t, t.TempDir()), tt.limits); err != nil {
			t.Error(err)
		}
	}
}

func TestArchiveDepth(t *testing.T) {
	for _, tt := range []struct {
		depth int
		fits  bool
	}{{maxDepth, true}, {maxDepth + 1, false}} {
		root := planted(t, map[string]string{deep(tt.depth): ""})
		var b bytes.Buffer
		err := Archive(t.Context(), &b, root, Options{})
		if !tt.fits {
			wantLimit(t, err, "nested more than")
			continue
		}
		if err != nil {
			t.Error(err)
		}
		if err := Unpack(t.Context(), &b, rootOf(t, t.TempDir()), Limits{}); err != nil {
			t.Error(err)
		}
	}
}

// The tree changes while it is archived.
func TestArchiveOfMovingTree(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(file string) error{
		"removed":                   os.Remove,
		"replaced by an outer link": func(file string) error { return replace(file, outside) },
		"replaced by an inner link": func(file string) error { return replace(file, "b") },
		"replaced by a directory":   func(file string) error { return errors.Join(os.Remove(file), os.Mkdir(file, 0o777)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			plant(t, dir, map[string]string{"a": "a", "b": "b"})
			filter := func(name string, _ bool) Choice {
				if name == "a" {
					if err := change(filepath.Join(dir, "a")); err != nil {
						t.Error(err)
					}
				}
				return Keep
			}
			if err := Archive(t.Context(), io.Discard, rootOf(t, dir), Options{Filter: filter}); err == nil {
				t.Error("nothing is noticed")
			}
		})
	}
	for name, size := range map[string]int64{"grew": 2, "shrank": 4} {
		root := planted(t, map[string]string{"a": "123"})
		f, err := root.Open("a")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		h := &tar.Header{Name: "a", Size: size}
		a := &archiver{ctx: t.Context(), tar: tar.NewWriter(io.Discard)}
		if err := a.header(h); err != nil {
			t.Fatal(err)
		}
		if err := a.copy(h, f); err == nil || !strings.Contains(err.Error(), `"a" changed`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func replace(file, target string) error {
	return errors.Join(os.Remove(file), os.Symlink(target, file))
}

func TestArchiveInterrupted(t *testing.T) {
	root := planted(t, map[string]string{"a": "a"})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := Archive(ctx, io.Discard, root, Options{}); !errors.Is(err, cause) {
		t.Errorf("Archive: %v", err)
	}
	if _, err := SourceRules(ctx, root, "", Options{}); !errors.Is(err, cause) {
		t.Errorf("SourceRules: %v", err)
	}
	if err := Unpack(ctx, bytes.NewReader(archive(t, root, Options{})), root, Limits{}); !errors.Is(err, cause) {
		t.Errorf("Unpack: %v", err)
	}
	ctx, cancel = context.WithCancelCause(t.Context())
	stop := func(string, bool) Choice { cancel(cause); return Keep }
	if err := Archive(ctx, io.Discard, root, Options{Filter: stop}); !errors.Is(err, cause) {
		t.Errorf("Archive, in the middle of it: %v", err)
	}
}

func TestArchiveWriteError(t *testing.T) {
	root := planted(t, map[string]string{"a": "a"})
	r, w := io.Pipe()
	full := errors.New("no space left")
	r.CloseWithError(full)
	if err := Archive(t.Context(), w, root, Options{}); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

// An archive has the very bytes that Go's own writers make of a walk over the directory, with the modes of
// source-controller and without times: digests are the same here and in a cluster.
func TestArchiveBytes(t *testing.T) {
	root := planted(t, map[string]string{
		"apps/base/kustomization.yaml":       "resources:\n- release.yaml\n",
		"apps/base/release.yaml":             strings.Repeat("a line that ends like none in Git\r\n", 3000),
		"apps/empty/":                        "",
		"apps-of-others/ä":                   "\x00\xff",
		"run.sh*":                            "#!/bin/sh\n",
		strings.Repeat("long/", 30) + "name": "longer than the name of a header",
		"link":                               "-> run.sh",
		"empty":                              "",
	})
	var want bytes.Buffer
	zw := gzip.NewWriter(&want)
	tw := tar.NewWriter(zw)
	err := filepath.Walk(root.Name(), func(p string, info os.FileInfo, err error) error {
		if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeDir, Mode: 0o750}
		if h.Name, err = filepath.Rel(root.Name(), p); err != nil {
			return err
		}
		h.Name = filepath.ToSlash(h.Name)
		var data []byte
		if !info.IsDir() {
			if data, err = os.ReadFile(p); err != nil {
				return err
			}
			h.Typeflag, h.Mode, h.Size = tar.TypeReg, 0o600, int64(len(data))
			if info.Mode()&0o100 != 0 {
				h.Mode = 0o700
			}
		}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		_, err = tw.Write(data)
		return err
	})
	if err := errors.Join(err, tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(archive(t, root, Options{}), want.Bytes()) {
		t.Error("the bytes differ")
	}
}
