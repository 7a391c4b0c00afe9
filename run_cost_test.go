package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A run over HelmReleases asks its servers for the same as one over the HelmCharts that are made of them, writes the same
// files, and one more for all releases; if nothing has changed it writes none. How long it takes is for BenchmarkReleases.
func TestReleasesCost(t *testing.T) {
	const charts = 20
	cold := map[string][]string{} // requests and files by kind
	for kind, manifest := range map[string]string{"HelmChart": benchChart, "HelmRelease": benchRelease} {
		network, server, manifests := benchServer(t, charts, manifest)
		dir := filepath.Join(t.TempDir(), "artifacts")
		benchRun(t, network, manifests, dir, 4)
		for _, r := range server.Log.Drain() {
			cold[kind] = append(cold[kind], r.String())
		}
		written := filesBelow(t, dir)
		for name := range written {
			// The HelmChart of a release is called after both.
			cold[kind] = append(cold[kind], strings.ReplaceAll(name, "default-chart-", "chart-"))
		}
		slices.Sort(cold[kind])

		benchRun(t, network, manifests, dir, 4)
		if got := server.Log.Drain(); len(got) != 1 {
			t.Errorf("%s: %d requests of a run that changes nothing", kind, len(got))
		}
		if got := filesBelow(t, dir); !maps.EqualFunc(got, written, os.SameFile) {
			t.Errorf("%s: a run that changes nothing writes files: %v", kind, slices.Sorted(maps.Keys(got)))
		}
	}
	more := slices.DeleteFunc(slices.Clone(cold["HelmRelease"]), func(s string) bool { return slices.Contains(cold["HelmChart"], s) })
	if !slices.Equal(more, []string{".helmsrc/v1/book", ".helmsrc/v1/book.lock"}) || len(cold["HelmRelease"]) != len(cold["HelmChart"])+len(more) {
		t.Errorf("releases cost more than charts: %q", more)
	}
}

// filesBelow are the files and links below a directory. A file that was written anew is another one.
func filesBelow(t *testing.T, dir string) map[string]os.FileInfo {
	t.Helper()
	files := map[string]os.FileInfo{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		files[filepath.ToSlash(rel)] = info
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
