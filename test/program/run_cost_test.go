package program

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// TestReleasesCost: a run over HelmReleases sends the same requests as a run over their HelmCharts, and writes the same files,
// and one more for all releases. Without changes it writes no file. BenchmarkReleases measures the time.
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

// filesBelow returns the files and links below a directory. A rewritten file is a different file.
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

// TestNothingTwice: a run over 300 charts from 25 sources sends no request twice: not if a chart is requested by its version
// and by a range, with other values, or by two sources of one repository.
func TestNothingTwice(t *testing.T) {
	const sources, each = 25, 12
	network := helmtest.NewNetwork()
	var servers []*helmtest.Server
	manifests := &strings.Builder{}
	for i := range sources {
		name := fmt.Sprintf("repo-%02d", i)
		servers = append(servers, serveCharts(t, network, name))
		fmt.Fprintf(manifests, `---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: %[1]s}
spec: {interval: 1h, url: "http://%[1]s.test"}
`, name)
		for j := range each {
			version, values := "1.2.3", ""
			if j%3 == 1 {
				version = "^1"
			}
			if j%4 == 3 {
				values = ", valuesFiles: [values.yaml]"
			}
			fmt.Fprintf(manifests, `---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: %[1]s-%[2]d}
spec: {interval: 1h, chart: %[1]s-chart-%[3]d, version: %[4]s, sourceRef: {kind: HelmRepository, name: %[1]s}%[5]s}
`, name, j, j/2, version, values)
		}
	}
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(file, []byte(manifests.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	benchRun(t, network, file, filepath.Join(t.TempDir(), "artifacts"), 8)
	total := 0
	for i, s := range servers {
		seen := map[string]bool{}
		for _, r := range s.Log.Drain() {
			if total++; seen[r.String()] {
				t.Errorf("repo-%02d: twice: %s", i, r)
			}
			seen[r.String()] = true
		}
	}
	if want := sources * (1 + each/2); total != want {
		t.Errorf("%d requests, want %d", total, want)
	}
}

// serveCharts serves a repository of six charts, whose names begin with its name, without digests in every second entry.
func serveCharts(t *testing.T, network *helmtest.Network, name string) *helmtest.Server {
	t.Helper()
	var published []helmtest.Published
	for i := range 6 {
		c := helmtest.NewChart(fmt.Sprintf("%s-chart-%d", name, i), "1.2.3")
		m, err := c.Metadata()
		if err != nil {
			t.Fatal(err)
		}
		archive, err := c.Package()
		if err != nil {
			t.Fatal(err)
		}
		p := helmtest.Published{Metadata: *m, Archive: archive, Created: helmtest.Created, URLs: []string{m.Name + "-" + m.Version + ".tgz"}}
		if i%2 == 0 {
			p.Digest = fmt.Sprintf("%x", sha256.Sum256(archive))
		}
		published = append(published, p)
	}
	repository, err := helmtest.NewRepository(published)
	if err != nil {
		t.Fatal(err)
	}
	server, err := helmtest.Serve(network, name+".test:80", nil, repository)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}
