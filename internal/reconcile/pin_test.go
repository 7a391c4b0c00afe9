package reconcile

import (
	"strings"
	"testing"
)

// oneOfEach contains an object of every kind of source, and a chart from each.
const oneOfEach = `
-- _repo/charts --
podinfo 6.5.0
podinfo 6.6.0
bare 1.0.0 digest=
common 1.0.0
common 1.2.0
-- _registry/charts --
charts/podinfo 6.5.0
charts/podinfo 6.6.0
-- _git/app/Chart.yaml --
apiVersion: v2
name: app
version: 1.2.3
dependencies:
- {name: common, version: ^1, repository: "http://repo.test"}
- {name: podinfo, version: 6.5.0, repository: "oci://registry.test/charts"}
-- _bucket/charts/app/Chart.yaml --
apiVersion: v2
name: app
version: 2.0.0
-- all.yaml --
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: keys}, stringData: {accesskey: S3ACCESSKEY, secretkey: s3-secret-key-of-the-tests}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {name: repo}, spec: {interval: 5m, url: "http://repo.test"}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {name: oci}, spec: {type: oci, insecure: true, url: "oci://registry.test/charts"}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: git}, spec: {interval: 5m, url: "http://git.test/charts.git", ref: {branch: main}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: Bucket, metadata: {name: bucket}, spec: {interval: 5m, bucketName: charts, endpoint: bucket.test, insecure: true, region: us-east-1, secretRef: {name: keys}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: range}, spec: {interval: 5m, insecure: true, url: "oci://registry.test/charts/podinfo", ref: {semver: ^6}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, metadata: {name: index}, spec: {interval: 5m, chart: podinfo, version: ^6, sourceRef: {kind: HelmRepository, name: repo}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, metadata: {name: bare}, spec: {interval: 5m, chart: bare, sourceRef: {kind: HelmRepository, name: repo}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, metadata: {name: registry}, spec: {interval: 5m, chart: podinfo, version: 6.5.x, sourceRef: {kind: HelmRepository, name: oci}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, metadata: {name: git}, spec: {interval: 5m, chart: ./app, sourceRef: {kind: GitRepository, name: git}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, metadata: {name: bucket}, spec: {interval: 5m, chart: charts/app, sourceRef: {kind: Bucket, name: bucket}}}
`

// TestPins compares the pins of runs with the content of the sources, and with each other: with Choose, with Fetch, and
// with all artifacts in storage.
func TestPins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneOfEach)
	chosen, fetched, stored := w.run(t, Options{Until: Choose}), w.run(t, Options{}), w.run(t, Options{})
	for name, r := range stored {
		if r.Failure != nil {
			t.Fatalf("%s: %v", name, r.Failure.Err)
		}
		if name == "HelmRepository/repo" || name == "HelmRepository/oci" {
			if r.Pin != nil {
				t.Errorf("%s resolves to nothing, not to %+v", name, r.Pin)
			}
			continue
		}
		if *fetched[name].Pin != *r.Pin {
			t.Errorf("%s: fetched\n%+v, stored\n%+v", name, fetched[name].Pin, r.Pin)
		}
		early := *chosen[name].Pin
		if name == "HelmChart/bare" && early.Digest == "" {
			early.Digest = r.Pin.Digest // no index says it
		}
		if early != *r.Pin {
			t.Errorf("%s: chosen\n%+v, stored\n%+v", name, early, r.Pin)
		}
	}
	git, bucket := *stored["GitRepository/git"].Pin, *stored["Bucket/bucket"].Pin
	pulled := *stored["HelmChart/registry"].Pin
	for name, want := range map[string]Pin{
		"GitRepository/git":   {Source: PinGit, URL: "http://git.test/charts.git", Revision: stored["GitRepository/git"].Artifact().Revision},
		"Bucket/bucket":       {Source: PinBucket, URL: "bucket.test/charts", Revision: stored["Bucket/bucket"].Artifact().Revision},
		"HelmChart/git":       {Source: PinGit, Chart: "./app", Version: "1.2.3", URL: git.URL, Revision: git.Revision},
		"HelmChart/bucket":    {Source: PinBucket, Chart: "charts/app", Version: "2.0.0", URL: bucket.URL, Revision: bucket.Revision},
		"HelmChart/index":     {Source: PinIndex, Chart: "podinfo", Version: "6.6.0", URL: "http://repo.test/podinfo-6.6.0.tgz", Digest: stored["HelmChart/index"].Artifact().Digest},
		"HelmChart/bare":      {Source: PinIndex, Chart: "bare", Version: "1.0.0", URL: "http://repo.test/bare-1.0.0.tgz", Digest: stored["HelmChart/bare"].Artifact().Digest},
		"HelmChart/registry":  {Source: PinRegistry, Chart: "podinfo", Version: "6.5.0", URL: "oci://registry.test/charts/podinfo:6.5.0", Digest: stored["HelmChart/registry"].Artifact().Digest, Manifest: pulled.Manifest},
		"OCIRepository/range": {Source: PinRegistry, Version: "6.6.0", URL: "oci://registry.test/charts/podinfo:6.6.0", Manifest: digestOf(stored["OCIRepository/range"].Artifact().Revision), Revision: stored["OCIRepository/range"].Artifact().Revision},
	} {
		if got := *stored[name].Pin; got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
	}
	if !strings.HasPrefix(pulled.Manifest, "sha256:") || pulled.Manifest == pulled.Digest {
		t.Errorf("manifest %s, layer %s", pulled.Manifest, pulled.Digest)
	}
}

// TestDependencyPins compares the pins of a chart's dependencies with the repositories.
func TestDependencyPins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneOfEach)
	for range 2 { // also when nothing has to be packaged
		results := w.run(t, Options{})
		got := results["HelmChart/git"].Dependencies
		if len(got) != 2 {
			t.Fatalf("%+v, %v", got, results["HelmChart/git"].Failure)
		}
		common, podinfo := got[0], got[1]
		if common.Name != "common" || common.Repository != "http://repo.test" || common.Constraint != "^1" ||
			common.Pin.Version != "1.2.0" || common.Pin.URL != "http://repo.test/common-1.2.0.tgz" || common.Pin.Digest == "" {
			t.Errorf("%+v", common)
		}
		if podinfo.Pin != *results["HelmChart/registry"].Pin {
			t.Errorf("%+v, want %+v", podinfo.Pin, results["HelmChart/registry"].Pin)
		}
	}
}

// digestOf returns the digest in the revision of an OCIRepository.
func digestOf(revision string) string {
	_, digest, _ := strings.Cut(revision, "@")
	return digest
}
