package reconcile

import (
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/store"
)

const releases = `
-- _repo/charts --
podinfo 6.5.0
-- _registry/charts --
charts/podinfo 6.5.0
-- all.yaml --
apiVersion: v1
kind: List
items:
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {name: repo}, spec: {interval: 5m, url: "http://repo.test"}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: oci}, spec: {interval: 5m, insecure: true, url: "oci://registry.test/charts/podinfo", ref: {tag: 6.5.0}, layerSelector: {mediaType: application/vnd.cncf.helm.chart.content.v1.tar+gzip, operation: copy}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: gone}, spec: {interval: 5m, insecure: true, url: "oci://registry.test/charts/podinfo", ref: {tag: v6.5.0}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, metadata: {name: paused}, spec: {suspend: true, interval: 5m, chart: podinfo, sourceRef: {kind: HelmRepository, name: repo}}}
- {apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: template}, spec: {interval: 5m, values: {a: 1}, chart: {spec: {chart: podinfo, version: ^6, sourceRef: {kind: HelmRepository, name: repo}}}}}
- {apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: ref}, spec: {interval: 5m, chartRef: {kind: OCIRepository, name: oci}}}
- {apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: gone}, spec: {interval: 5m, chartRef: {kind: OCIRepository, name: gone}}}
- {apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: missing}, spec: {interval: 5m, chartRef: {kind: OCIRepository, name: nowhere}}}
- {apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: paused}, spec: {interval: 5m, chartRef: {kind: HelmChart, name: paused}}}
- {apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: values}, spec: {interval: 5m, valuesFrom: [{kind: ConfigMap, name: nowhere}], chartRef: {kind: OCIRepository, name: oci}}}
`

// TestReleases evaluates the sources of releases, in a run with Choose, a run with Fetch, and a run after a fetch.
func TestReleases(t *testing.T) {
	t.Parallel()
	w := newWorld(t, releases)
	for i, until := range []Line{Choose, Fetch, Fetch} {
		results := w.run(t, Options{Until: until})
		for name, want := range map[string]string{
			"gone":    "OCIRepository 'default/gone' is not ready: failed to determine artifact digest",
			"missing": "could not get Source object",
			"paused":  "HelmChart 'default/paused' is not ready: latest generation of object has not been reconciled",
			"values":  "could not resolve ConfigMap",
		} {
			r := results["HelmRelease/"+name]
			if r.State != Failed || !strings.Contains(r.Message(), want) {
				t.Fatalf("run %d: %s: state %d: %s", i, name, r.State, r.Message())
			}
		}
		if by := results["HelmRelease/gone"].BlockedBy(); by.Kind != "OCIRepository" || by.Name != "gone" {
			t.Errorf("run %d: blocked by %v", i, by)
		}
		if by := results["HelmRelease/paused"].BlockedBy(); by.Kind != "HelmChart" || by.Name != "paused" {
			t.Errorf("run %d: blocked by %v", i, by)
		}
		if by := results["HelmRelease/values"].BlockedBy(); by != (finding.Object{}) {
			t.Errorf("run %d: blocked by %v, where something is wrong with the object itself", i, by)
		}
		if hint := hintOf(results["OCIRepository/gone"].Failure.Err); !strings.Contains(hint, "6.5.0") {
			t.Errorf("run %d: hint %q", i, hint)
		}
		for _, name := range []string{"template", "ref"} {
			checkRelease(t, results["HelmRelease/"+name], until)
		}
	}
}

// checkRelease checks the result of a release whose chart is available.
func checkRelease(t *testing.T, r *Result, until Line) {
	t.Helper()
	name := r.Object.Object.Name
	if until == Choose {
		if r.State != Resolved || r.Resolution.Version != "6.5.0" {
			t.Errorf("%s: state %d, %+v", name, r.State, r.Resolution)
		}
		return
	}
	document, err := r.Document()
	if err != nil {
		t.Fatal(err)
	}
	annotations, _ := document["metadata"].(map[string]any)["annotations"].(map[string]any)
	version, _ := annotations["helmsrc.dev/chart-version"].(string)
	if r.State != Waiting || annotations["helmsrc.dev/chart"] != "podinfo" || !strings.HasPrefix(version, "6.5.0") || r.Artifact() != nil {
		t.Errorf("%s: state %d, %v: %s", name, r.State, annotations, r.Message())
	}
}

func hintOf(err error) string {
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		return hinted.Hint()
	}
	return ""
}

// TestRecordedRelease verifies that only the record of a release is used, not printed data: an annotation in the input
// is not the record of a run.
func TestRecordedRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(releases, "metadata: {name: template}", `metadata: {name: template, annotations: {helmsrc.dev/chart: another}}`, 1))
	for range 2 {
		checkRelease(t, w.run(t, Options{})["HelmRelease/template"], Fetch)
	}
	st, err := store.Open(filepath.Join(w.dir, "artifacts"), store.Options{
		Algorithm: godigest.SHA256, RetentionRecords: 2, Kinds: Kinds().Names(), Shared: Kinds().WithoutArtifact(), Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	record, err := st.Recall(store.NewKey("HelmRelease", "default", "template"))
	if want := (store.ReleasedChart{Name: "podinfo", Version: "6.5.0", Artifact: "helmchart/default/default-template/podinfo-6.5.0.tgz"}); err != nil || record.Chart != want {
		t.Errorf("%+v, %v", record, err)
	}
	checkRemembered(t, st)
}

// checkRemembered checks the results that are read from an artifacts directory without a run.
func checkRemembered(t *testing.T, st *store.Store) {
	t.Helper()
	results, failures := Remembered(st, "", time.Now)
	if len(failures) > 0 {
		t.Fatal(failures)
	}
	states := map[string]State{}
	for _, r := range results {
		states[r.Object.Object.Kind+"/"+r.Object.Object.Name] = r.State
	}
	for name, want := range map[string]State{
		"HelmRepository/repo": Ready, "HelmChart/default-template": Ready, "OCIRepository/oci": Ready, "OCIRepository/gone": Failed,
		"HelmRelease/template": Waiting, "HelmRelease/missing": Failed,
	} {
		if got, ok := states[name]; !ok || got != want {
			t.Errorf("%s: state %d, want %d", name, got, want)
		}
	}
	outlines, _ := Outlines(st, "", time.Now)
	for i, r := range outlines {
		if r.Object.Content != nil || r.Object.Object.Content != nil || r.Status != nil || r.State != results[i].State {
			t.Errorf("%s is more than an outline", r.Object.Object)
		}
		whole, err := r.Whole()
		if err != nil {
			t.Fatal(err)
		}
		got, err := whole.Document()
		want, wantErr := results[i].Document()
		if errors.Join(err, wantErr) != nil || !reflect.DeepEqual(got, want) || want["spec"] == nil {
			t.Errorf("printed %v, %v; want %v, %v", got, err, want, wantErr)
		}
	}
	found, failures := StandIns(st, time.Now)
	repo, oci := found[store.NewKey("HelmRepository", "default", "repo")], found[store.NewKey("OCIRepository", "default", "oci")]
	if len(failures) > 0 || len(repo.Archives) != 1 || !strings.HasPrefix(oci.Path, st.Dir()) {
		t.Errorf("%+v, %+v, %v", repo, oci, failures)
	}
}

const trees = `
-- _git/app/Chart.yaml --
apiVersion: v2
name: app
version: 1.2.3
-- _git/app/values.yaml --
a: 1
-- _git/prod.yaml --
a: 2
-- _git/app-0.1.0/Chart.yaml --
apiVersion: v2
name: old
version: 0.1.0
-- shared/common.yaml --
b: 1
-- all.yaml --
apiVersion: v1
kind: List
items:
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: shared}, spec: {interval: 5m, url: "http://nowhere.test/shared.git"}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: git}, spec: {interval: 5m, url: "http://git.test/charts.git", ref: {branch: main}, include: [{repository: {name: shared}, toPath: vendor}]}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: self}, spec: {interval: 5m, url: "http://git.test/charts.git", ref: {branch: main}, include: [{repository: {name: self}}]}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: nothing}, spec: {interval: 5m, url: "http://git.test/charts.git", ref: {branch: nothing}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, metadata: {name: values}, spec: {interval: 5m, chart: app, valuesFiles: [app/values.yaml, prod.yaml, vendor/common.yaml], sourceRef: {kind: GitRepository, name: git}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, metadata: {name: revision}, spec: {interval: 5m, chart: app, reconcileStrategy: Revision, sourceRef: {kind: GitRepository, name: git}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, metadata: {name: missing}, spec: {interval: 5m, chart: nowhere, sourceRef: {kind: GitRepository, name: git}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, metadata: {name: sourceless}, spec: {interval: 5m, chart: app, sourceRef: {kind: GitRepository, name: nothing}}}
`

// TestTrees uses charts from a repository that includes another one, which a local directory replaces.
func TestTrees(t *testing.T) {
	t.Parallel()
	w := newWorld(t, trees)
	o := Options{Directories: map[store.Key]StandIn{store.NewKey("GitRepository", "default", "shared"): {Path: filepath.Join(w.dir, "shared")}}}
	for i, until := range []Line{Fetch, Fetch, Choose} { // the last one finds everything in storage
		o.Until = until
		results := w.run(t, o)
		for name, want := range map[string]string{
			"GitRepository/shared":  "",
			"GitRepository/git":     "",
			"GitRepository/self":    "no artifact available for include 'self'",
			"GitRepository/nothing": "nothing",
			"HelmChart/values":      "",
			"HelmChart/revision":    "",
			"HelmChart/missing":     "nowhere",
			"HelmChart/sourceless":  "no artifact available for GitRepository source 'nothing'",
		} {
			switch r := results[name]; {
			case want == "" && (r.State != Ready || r.Artifact() == nil):
				t.Fatalf("run %d: %s: state %d: %s", i, name, r.State, r.Message())
			case want != "" && (r.State != Failed || !strings.Contains(r.Message(), want) || r.Artifact() != nil):
				t.Fatalf("run %d: %s: state %d: %s", i, name, r.State, r.Message())
			}
		}
		if v := results["HelmChart/values"].Pin.Version; v != "1.2.3+1" {
			t.Errorf("run %d: version %s", i, v)
		}
		if v := results["HelmChart/revision"].Pin.Version; !strings.HasPrefix(v, "1.2.3+") || len(v) != len("1.2.3+")+revisionLength {
			t.Errorf("run %d: version %s", i, v)
		}
		if pin := results["GitRepository/shared"].Pin; pin.Source != PinDirectory || pin.Revision == "" || pin.URL != "" {
			t.Errorf("run %d: %+v", i, pin)
		}
	}
}

const artifacts = `
-- _registry/charts --
charts/podinfo 6.5.0
charts/podinfo 6.6.0
-- podinfo/Chart.yaml --
apiVersion: v2
name: podinfo
version: 1.0.0
-- text --
neither
-- all.yaml --
apiVersion: v1
kind: List
items:
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: extracted}, spec: {interval: 5m, insecure: true, url: "oci://registry.test/charts/podinfo", ref: {semver: <6.6}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: nolayer}, spec: {interval: 5m, insecure: true, url: "oci://registry.test/charts/podinfo", ref: {tag: 6.5.0}, layerSelector: {mediaType: text/plain}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: latest}, spec: {interval: 5m, insecure: true, url: "oci://registry.test/charts/podinfo"}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: digest}, spec: {interval: 5m, insecure: true, url: "oci://registry.test/charts/podinfo", ref: {digest: "md5:1"}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: unsigned}, spec: {interval: 5m, insecure: true, url: "oci://registry.test/charts/podinfo", ref: {tag: 6.5.0}, verify: {provider: cosign, secretRef: {name: nokey}}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: directory}, spec: {interval: 5m, url: "oci://nowhere.test/podinfo"}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: archive}, spec: {interval: 5m, url: "oci://nowhere.test/podinfo"}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: text}, spec: {interval: 5m, url: "oci://nowhere.test/podinfo"}}
`

// TestArtifacts uses artifacts of a registry, and a directory that replaces one.
func TestArtifacts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, artifacts)
	w.writeRepository(t, "registry", "built")
	key := func(name string) store.Key { return store.NewKey("OCIRepository", "default", name) }
	o := Options{Directories: map[store.Key]StandIn{
		key("directory"): {Path: filepath.Join(w.dir, "podinfo")}, key("text"): {Path: filepath.Join(w.dir, "text")},
		key("archive"): {Path: filepath.Join(w.dir, "built", "podinfo-6.5.0.tgz")},
	}}
	for i, until := range []Line{Choose, Fetch, Fetch} {
		o.Until = until
		results := w.run(t, o)
		for name, want := range map[string]string{
			"nolayer": "", "extracted": "", "directory": "", "archive": "",
			"latest":   "failed to determine artifact digest",
			"digest":   "failed to determine artifact digest",
			"unsigned": "",
			"text":     "it is neither a directory nor a .tgz",
		} {
			if until == Fetch && name == "nolayer" {
				want = "failed to find layer with media type 'text/plain'"
			}
			if until == Fetch && name == "unsigned" {
				want = "nokey"
			}
			r := results["OCIRepository/"+name]
			if (want == "") != (r.Failure == nil) || !strings.Contains(r.Message(), want) {
				t.Errorf("run %d: %s: state %d: %s", i, name, r.State, r.Message())
			}
			if (until == Choose || want != "") != (r.Artifact() == nil) {
				t.Errorf("run %d: %s: artifact %+v", i, name, r.Artifact())
			}
		}
		for _, name := range []string{"directory", "archive"} {
			if pin := results["OCIRepository/"+name].Pin; pin.Source != PinDirectory || !strings.HasPrefix(pin.Revision, "sha256:") {
				t.Errorf("run %d: %s: %+v", i, name, pin)
			}
		}
	}
}

const generators = `
-- _git/app/Chart.yaml --
apiVersion: v2
name: app
version: 1.2.3
-- _git/other/Chart.yaml --
apiVersion: v2
name: other
version: 2.0.0
-- all.yaml --
apiVersion: v1
kind: List
items:
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: git}, spec: {interval: 5m, url: "http://git.test/charts.git", ref: {branch: main}}}
- apiVersion: source.extensions.fluxcd.io/v1beta1
  kind: ArtifactGenerator
  metadata: {name: split}
  spec:
    sources: [{alias: repo, kind: GitRepository, name: git}]
    artifacts: [{name: app, originRevision: "@repo", copy: [{from: "@repo/app/**", to: "@artifact/app/"}]}]
- {apiVersion: source.extensions.fluxcd.io/v1beta1, kind: ArtifactGenerator, metadata: {name: none}, spec: {sources: [{alias: repo, kind: GitRepository, name: nowhere}], artifacts: [{name: none, copy: [{from: "@repo/**", to: "@artifact/"}]}]}}
`

// TestGenerators generates an artifact from a part of a repository.
func TestGenerators(t *testing.T) {
	t.Parallel()
	w := newWorld(t, generators)
	var digest string
	for i, until := range []Line{Choose, Fetch, Fetch} {
		results := w.run(t, Options{Until: until})
		made, ok := results["ExternalArtifact/app"]
		switch generator := results["ArtifactGenerator/split"]; {
		case !ok || made.Failure != nil || generator.Failure != nil:
			t.Fatalf("run %d: %+v, %+v", i, made, generator)
		case until == Choose && made.Artifact() != nil:
			t.Errorf("run %d: %+v", i, made.Artifact())
		case until == Choose:
		case made.Artifact() == nil || digest != "" && made.Artifact().Digest != digest:
			t.Errorf("run %d: %+v, before %s", i, made.Artifact(), digest)
		default:
			digest = made.Artifact().Digest
		}
		if r := results["ArtifactGenerator/none"]; r.State != Failed || !strings.Contains(r.Message(), "get sources failed") {
			t.Errorf("run %d: state %d: %s", i, r.State, r.Message())
		}
	}
}
