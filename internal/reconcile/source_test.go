package reconcile

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/store"
)

// published contains the same charts in each kind of source that publishes versions.
const published = `
-- _repo/charts --
podinfo 6.5.0
podinfo 6.6.0
podinfo 7.0.0-rc.1
-- _registry/charts --
charts/podinfo 6.5.0
charts/podinfo 6.6.0
charts/podinfo 7.0.0-rc.1
-- _git/podinfo/Chart.yaml --
apiVersion: v2
name: podinfo
version: 6.6.0
-- all.yaml --
apiVersion: v1
kind: List
items:
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {name: http}, spec: {interval: 5m, url: "http://repo.test"}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {name: directory}, spec: {interval: 5m, url: "http://nowhere.test"}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {name: registry}, spec: {type: oci, insecure: true, url: "oci://registry.test/charts"}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: tree}, spec: {interval: 5m, url: "http://git.test/charts.git", ref: {branch: main}}}
`

// TestChartSources resolves the same versions in every source of charts: over HTTP, in a directory, in a registry, in a tree.
func TestChartSources(t *testing.T) {
	t.Parallel()
	sources := []struct {
		name, kind string
		one        bool // it has only one version, regardless of the constraint
	}{
		{"http", "HelmRepository", false},
		{"directory", "HelmRepository", false},
		{"registry", "HelmRepository", false},
		{"tree", "GitRepository", true},
	}
	questions := []struct {
		name, chart, version string
		want                 string // the version, or else
		is                   error
	}{
		{name: "newest", chart: "podinfo", version: "*", want: "6.6.0"},
		{name: "exact", chart: "podinfo", version: "6.5.0", want: "6.5.0"},
		{name: "range", chart: "podinfo", version: "~6.5", want: "6.5.0"},
		{name: "pre-release", chart: "podinfo", version: ">6.6.0-0", want: "7.0.0-rc.1"},
		{name: "no-match", chart: "podinfo", version: ">=8", is: resolve.ErrNoMatch},
		{name: "unknown", chart: "nothing", version: "*"},
		{name: "bad-range", chart: "podinfo", version: "six"},
	}
	archive := published
	for _, s := range sources {
		for _, q := range questions {
			archive += fmt.Sprintf("- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, metadata: {name: %s-%s}, spec: {interval: 5m, chart: %s, version: %q, sourceRef: {kind: %s, name: %s}}}\n",
				s.name, q.name, q.chart, q.version, s.kind, s.name)
		}
	}
	w := newWorld(t, archive)
	w.writeRepository(t, "repo", "directory")
	o := Options{Retries: 0, Directories: map[store.Key]StandIn{
		store.NewKey("HelmRepository", "default", "directory"): {Path: filepath.Join(w.dir, "directory")},
	}}
	for _, until := range []Line{Choose, Fetch} {
		o.Until = until
		results := w.run(t, o)
		for _, s := range sources {
			for _, q := range questions {
				name := fmt.Sprintf("%s-%s", s.name, q.name)
				r := results["HelmChart/"+name]
				want := q.want
				if s.one && q.chart == "podinfo" {
					want = "6.6.0"
				}
				checkAnswer(t, fmt.Sprintf("until %d: %s", until, name), r, want, until)
				if want == "" && !errors.Is(r.Failure.Err, q.is) && q.is != nil {
					t.Errorf("%s: %v is no %v", name, r.Failure.Err, q.is)
				}
			}
		}
	}
}

// checkAnswer compares the result of a chart with the wanted version, "" for a failure.
func checkAnswer(t *testing.T, name string, r *Result, want string, until Line) {
	t.Helper()
	switch {
	case want == "" && (r.State != Failed || r.Pin != nil || r.Artifact() != nil):
		t.Errorf("%s: state %d, pin %+v", name, r.State, r.Pin)
	case want == "":
	case r.Failure != nil:
		t.Errorf("%s: %v", name, r.Failure.Err)
	case r.Pin.Version != want || r.Pin.Chart != "podinfo" || r.Resolution.Version != want:
		t.Errorf("%s: %+v, want %s", name, r.Pin, want)
	case until == Choose && (r.State != Resolved || r.Artifact() != nil):
		t.Errorf("%s: a run that only chooses left state %d", name, r.State)
	case until == Fetch && (r.State != Ready || r.Artifact().Revision != want):
		t.Errorf("%s: state %d, artifact %+v", name, r.State, r.Artifact())
	}
}
