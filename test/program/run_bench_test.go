package program

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/cmd"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// BenchmarkRun measures a whole run, from manifests to documents: 100 charts of one repository on loopback. A cold run begins
// with an empty artifacts directory, a warm run finds everything in it.
func BenchmarkRun(b *testing.B) {
	network, manifests := benchRepository(b, 100, benchChart)
	for _, jobs := range []int{1, 4, 16} {
		run := func(b *testing.B, dir string) { benchRun(b, network, manifests, dir, jobs) }
		b.Run(fmt.Sprintf("cold/jobs=%d", jobs), func(b *testing.B) {
			root, i := b.TempDir(), 0
			for b.Loop() {
				i++
				run(b, filepath.Join(root, strconv.Itoa(i)))
			}
		})
		b.Run(fmt.Sprintf("warm/jobs=%d", jobs), func(b *testing.B) {
			dir := b.TempDir()
			run(b, dir)
			for b.Loop() {
				run(b, dir)
			}
		})
	}
}

// BenchmarkReleases compares a run over HelmReleases with a run over their HelmCharts.
func BenchmarkReleases(b *testing.B) {
	const charts = 300
	for _, kind := range []struct{ name, manifest string }{{"HelmChart", benchChart}, {"HelmRelease", benchRelease}} {
		network, manifests := benchRepository(b, charts, kind.manifest)
		b.Run("cold/"+kind.name, func(b *testing.B) {
			root, i := b.TempDir(), 0
			for b.Loop() {
				i++
				benchRun(b, network, manifests, filepath.Join(root, strconv.Itoa(i)), 8)
			}
		})
		b.Run("warm/"+kind.name, func(b *testing.B) {
			dir := b.TempDir()
			benchRun(b, network, manifests, dir, 8)
			for b.Loop() {
				benchRun(b, network, manifests, dir, 8)
			}
		})
	}
}

func benchRun(b testing.TB, network *helmtest.Network, manifests, dir string, jobs int) {
	b.Helper()
	var stderr bytes.Buffer
	code := cmd.Run(b.Context(), &cmd.Env{
		Args:     []string{"fetch", "-f", manifests, "-d", dir, "-j", strconv.Itoa(jobs), "-o", "name"},
		Stdin:    bytes.NewReader(nil),
		Stdout:   new(bytes.Buffer),
		Stderr:   &stderr,
		Terminal: func() (int, int, bool) { return 0, 0, false },
		Getenv:   func(string) string { return "" },
		Now:      time.Now,
		Dial:     network.Dial,
		Program:  "helmsrc",
	})
	if code != 0 {
		b.Fatalf("exit code %d\n%s", code, &stderr)
	}
}

// The manifests for a chart of the repository.
const (
	benchChart = `---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: %[1]s}
spec: {interval: 1h, chart: %[1]s, version: 1.x, sourceRef: {kind: HelmRepository, name: repo}}
`
	benchRelease = `---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: %[1]s}
spec:
  interval: 1h
  chart: {spec: {chart: %[1]s, version: 1.x, sourceRef: {kind: HelmRepository, name: repo}}}
  values: {replicas: 2, image: {tag: %[1]s}}
`
)

// benchRepository serves charts, and writes a manifest for each of them.
func benchRepository(b testing.TB, charts int, manifest string) (*helmtest.Network, string) {
	network, _, manifests := benchServer(b, charts, manifest)
	return network, manifests
}

func benchServer(b testing.TB, charts int, manifest string) (*helmtest.Network, *helmtest.Server, string) {
	b.Helper()
	var published []helmtest.Published
	manifests := bytes.NewBufferString(`apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: repo}
spec: {interval: 1h, url: "http://repo.test"}
`)
	for i := range charts {
		c := helmtest.NewChart(fmt.Sprintf("chart-%03d", i), "1.2.3")
		m, err := c.Metadata()
		if err != nil {
			b.Fatal(err)
		}
		archive, err := c.Package()
		if err != nil {
			b.Fatal(err)
		}
		published = append(published, helmtest.Published{
			Metadata: *m, Archive: archive, Created: helmtest.Created,
			Digest: fmt.Sprintf("%x", sha256.Sum256(archive)), URLs: []string{m.Name + "-" + m.Version + ".tgz"},
		})
		fmt.Fprintf(manifests, manifest, m.Name)
	}
	repository, err := helmtest.NewRepository(published)
	if err != nil {
		b.Fatal(err)
	}
	network := helmtest.NewNetwork()
	server, err := helmtest.Serve(network, "repo.test:80", nil, http.Handler(repository))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(server.Close)
	file := filepath.Join(b.TempDir(), "manifests.yaml")
	if err := os.WriteFile(file, manifests.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	return network, server, file
}
