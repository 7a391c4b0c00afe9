package render

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// TestOnce opens each file once for any number of clusters: the manifests when the input is read, the other files of a base
// for the first cluster. Later contents of the files are never read.
func TestOnce(t *testing.T) {
	for _, count := range []int{1, 4, 16} {
		files := map[string]string{
			"base/kustomization.yaml": "resources: [repo.yaml]\nconfigMapGenerator: [{name: settings, namespace: apps, files: [app.properties]}]\n",
			"base/repo.yaml":          strings.Replace(aRepository, "%s", "one", 1),
			"base/app.properties":     "a=b\n",
		}
		for i := range count {
			name := fmt.Sprintf("%02d", i)
			files["clusters/"+name+"/apps.yaml"] = fluxOf("apps", "./overlays/"+name, "")
			files["overlays/"+name+"/kustomization.yaml"] = "resources: [../../base]\npatches: [{path: patch.yaml}]\n"
			files["overlays/"+name+"/patch.yaml"] = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: one, namespace: apps}\nspec: {suspend: true}\n"
		}
		dir := t.TempDir()
		write(t, dir, files)
		in := manifest.Read(t.Context(), manifest.Options{Files: []string{dir}, Recursive: true})
		spoil := func(match func(string) bool) {
			maps.DeleteFunc(files, func(name, _ string) bool {
				if match(name) {
					write(t, dir, map[string]string{name: "{ broken\n"})
				}
				return match(name)
			})
		}
		spoil(func(name string) bool { return filepath.Ext(name) == ".yaml" })
		clusters := New(t.Context(), in, Options{Namespace: "default"}).Clusters()
		if len(clusters) != count {
			t.Fatalf("%d clusters, want %d", len(clusters), count)
		}
		for i, c := range clusters {
			set, errs := in.Set(c.Build().Build)
			if got := names(set); len(errs) > 0 || !slices.Equal(got, []string{"apps/one"}) {
				t.Errorf("%d clusters: %d has %v, %v", count, i+1, got, errs)
			}
			spoil(func(string) bool { return true })
		}
	}
}

// TestDisk compares the cache of the disk with the operating system, also for the second access.
func TestDisk(t *testing.T) {
	root, err := absolute(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, root, map[string]string{"a/b/c.yaml": "c", "a/d.yaml": "d", "x.yaml": "x"})
	for link, to := range map[string]string{"a/up": "..", "a/file": "b/c.yaml", "in": "a/b", "out": "/", "gone": "nowhere", "round": "round", "a/b/far": "../../in/c.yaml"} {
		if err := os.Symlink(to, filepath.Join(root, filepath.FromSlash(link))); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
	d := newDisk()
	for range 2 {
		for _, name := range []string{
			"", "a", "a/b", "a/b/c.yaml", "a/d.yaml", "a/up", "a/up/a/up/x.yaml", "a/file", "in", "in/c.yaml", "in/far", "out", "out/etc", "gone", "gone/a", "round", "round/a",
			"a/d.yaml/e", "a/none", "none/none", "a/../x.yaml", "../" + filepath.Base(root) + "/x.yaml", "..", "in/../x.yaml",
		} {
			path := root + "/" + name
			want, wantErr := filepath.EvalSymlinks(filepath.Clean(path))
			got, err := d.real(filepath.Clean(path))
			if got != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Errorf("%s: %s, %v, want %s, %v", path, got, err, want, wantErr)
			}
			for _, path := range []string{path, name} {
				if got, err := d.absolute(path); got != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Errorf("%s, absolute: %s, %v, want %s, %v", path, got, err, want, wantErr)
				}
			}
			if wantErr != nil {
				continue
			}
			info, err := os.Stat(want)
			if err != nil {
				t.Fatal(err)
			}
			if mode, err := d.mode(got); err != nil || mode != info.Mode() {
				t.Errorf("%s: mode %v, %v, want %v", path, mode, err, info.Mode())
			}
			text, textErr := readFile(want)
			if got, err := d.read(want); string(got) != string(text) || (err == nil) != (textErr == nil) {
				t.Errorf("%s: %q, %v, want %q, %v", path, got, err, text, textErr)
			}
		}
	}
	if _, err := d.mode(filepath.Join(root, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
	if _, err := d.within(filepath.Join(root, "a"), filepath.Join(root, "a", "up", "x.yaml")); !errors.As(err, new(*outsideError)) {
		t.Errorf("a link out of the root: %v", err)
	}
}

// TestTextsBound keeps no more text than the limit.
func TestTextsBound(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a": "1", "b": "2"})
	d := newDisk()
	d.kept = maxTexts - 1
	for _, name := range []string{"a", "b"} {
		if _, err := d.read(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if len(d.texts) != 1 || d.kept != maxTexts {
		t.Errorf("%d texts, %d bytes", len(d.texts), d.kept)
	}
}
