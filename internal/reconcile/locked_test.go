package reconcile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/lock"
)

// packaged contains charts that are packaged: from an index, with values files; from a tree, with values files and dependencies.
const packaged = oneOfEach + `
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, metadata: {name: values}, spec: {interval: 5m, chart: podinfo, version: ^6, valuesFiles: [values.yaml, absent.yaml], ignoreMissingValuesFiles: true, sourceRef: {kind: HelmRepository, name: repo}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, metadata: {name: tree}, spec: {interval: 5m, chart: ./app, reconcileStrategy: Revision, valuesFiles: [app/production.yaml], sourceRef: {kind: GitRepository, name: git}}}
-- _git/app/production.yaml --
replicas: 2
-- _git/app/values.yaml --
replicas: 1
`

// locked returns the lock of results, as it is read from its file.
func (w *world) locked(t *testing.T, results map[string]*Result) *lock.Lock {
	t.Helper()
	l := &Locked{Lock: lock.New(), Again: nil}
	for _, kind := range []string{"GitRepository", "Bucket", "OCIRepository", "HelmChart"} { // sources first
		for name, r := range results {
			if !strings.HasPrefix(name, kind+"/") {
				continue
			}
			e, err := l.Entry(w.inventory, r)
			if err != nil || e == nil {
				t.Fatalf("%s: %v, %v", name, err, r.Failure)
			}
			l.Lock.Put(*e)
		}
	}
	text, err := l.Lock.Write()
	if err != nil {
		t.Fatal(err)
	}
	read, err := lock.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// TestLocked compares runs with a lock to the run that wrote it: they return the same bytes and pins, request no index, no
// list and no tag, and request nothing for stored artifacts.
func TestLocked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, packaged)
	first := w.run(t, Options{})
	l := w.locked(t, first)
	entries := map[string]*lock.Entry{}
	for _, e := range l.Entries() {
		entries[e.Object] = e
	}
	if e := entries["HelmChart/default/tree"]; len(e.Dependencies) != 2 || e.Package == "" || len(e.ValuesFiles) != 1 || e.ValuesFiles[0].Digest == "" {
		t.Errorf("%+v", e)
	}
	if e := entries["HelmChart/default/values"]; e.Published == "" || e.ValuesFiles[0].Digest == "" || e.ValuesFiles[1].Digest != "" {
		t.Errorf("%+v", e)
	}
	w.requests()
	only := Options{Locked: &Locked{Lock: l, File: "helmsrc.lock"}}
	for _, run := range []string{"of what is in storage", "of nothing", "of what it stored itself"} {
		if run == "of nothing" {
			if err := os.RemoveAll(filepath.Join(w.dir, "artifacts")); err != nil {
				t.Fatal(err)
			}
		}
		for name, r := range w.runKinds(t, only, sourcev1.HelmRepositoryKind) {
			if r.Failure != nil {
				t.Fatalf("%s, %s: %v", run, name, r.Failure.Err)
			}
			if want := first[name].Pin; want != nil && (r.Pin == nil || *r.Pin != *want) {
				t.Errorf("%s, %s:\n got %+v\nwant %+v", run, name, r.Pin, want)
			}
			if got, want := r.Artifact(), first[name].Artifact(); want != nil && (got.Digest != want.Digest || got.Revision != want.Revision) {
				t.Errorf("%s, %s: artifact %s %s, want %s %s", run, name, got.Revision, got.Digest, want.Revision, want.Digest)
			}
		}
		requests := w.requests()
		if run != "of nothing" && len(requests) > 0 {
			t.Errorf("%s: requests %q", run, requests)
		}
		for _, r := range requests {
			if strings.Contains(r, "index.yaml") || strings.Contains(r, "/tags/list") || strings.Contains(r, "/manifests/6") {
				t.Errorf("%s: request %s", run, r)
			}
		}
	}
	for name, r := range w.run(t, Options{Refresh: true, Locked: &Locked{Lock: l, Mode: LockedAsked}}) {
		if r.Failure != nil {
			t.Errorf("asked, %s: %v", name, r.Failure.Err)
		}
	}
}

// TestLockedMisfits changes manifests after the lock was written. Each changed object fails and names the position;
// with LockedFirst it is resolved again, and with LockedAnyway it takes the locked version.
func TestLockedMisfits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneOfEach)
	first := w.run(t, Options{})
	l := w.locked(t, first)
	for before, after := range map[string]string{
		"version: 6.5.x": "version: 6.6.x", "ref: {branch: main}": "ref: {name: refs/heads/main}", "ref: {semver: ^6}": "ref: {tag: 6.5.0}",
		"bucketName: charts, ": "bucketName: charts, prefix: charts, ", "metadata: {name: bare}": "metadata: {name: new}",
	} {
		w.edit(t, before, after)
	}
	o := Options{Until: Choose, Locked: &Locked{Lock: l, File: "helmsrc.lock"}}
	results := w.runKinds(t, o, sourcev1.HelmRepositoryKind)
	for name, want := range map[string]string{
		"HelmChart/registry": "constraint is \"6.5.x\"", "GitRepository/git": "constraint is", "OCIRepository/range": "constraint is",
		"Bucket/bucket": "constraint is", "HelmChart/new": "has no entry", "HelmChart/git": "revision", "HelmChart/bucket": "revision",
	} {
		r := results[name]
		if r.State != Failed || ClassOf(r.Failure) != Drift {
			t.Errorf("%s: state %d: %s", name, r.State, r.Message())
			continue
		}
		f, ok := r.FailureFinding()
		if !ok || f.Code != finding.NotLocked || !strings.Contains(f.Message, want) || f.Fix == "" {
			t.Errorf("%s: want %q: %+v", name, want, f)
		}
	}
	if r := results["HelmChart/index"]; r.Failure != nil || r.Pin.Version != "6.6.0" {
		t.Errorf("what still fits: %s", r.Message())
	}

	o.Locked.Mode = LockedFirst
	results = w.run(t, o)
	if r := results["HelmChart/registry"]; r.Failure != nil || r.Pin.Version != "6.6.0" {
		t.Errorf("chosen again: %+v, %s", r.Pin, r.Message())
	}
	o.Locked.Mode = LockedAnyway
	results = w.runKinds(t, o, sourcev1.HelmRepositoryKind)
	if r := results["HelmChart/registry"]; r.Failure != nil || r.Pin.Version != "6.5.0" {
		t.Errorf("what was locked: %+v, %s", r.Pin, r.Message())
	}
}

// TestLockedElsewhere uses a lock of several clusters. Equal entries are used; entries that differ are refused unless the
// input is one of the clusters.
func TestLockedElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneOfEach)
	first := w.run(t, Options{}) // an archive whose index has no digest is pinned by its bytes
	l := lock.New()
	for _, e := range w.locked(t, first).Entries() {
		for _, cluster := range []string{"production", "staging"} {
			of := *e
			of.Cluster = cluster
			if cluster == "staging" && strings.HasSuffix(e.Object, "/registry") {
				of.Version, of.Digest, of.LayerDigest, of.ManifestDigest = "6.5.1", e.ManifestDigest, e.ManifestDigest, e.LayerDigest
			}
			l.Put(of)
		}
	}
	results := w.runKinds(t, Options{Until: Choose, Locked: &Locked{Lock: l, File: "helmsrc.lock"}}, sourcev1.HelmRepositoryKind)
	if r := results["HelmChart/index"]; r.Failure != nil {
		t.Errorf("entries that are equal: %s", r.Message())
	}
	r := results["HelmChart/registry"]
	if r.State != Failed || !strings.Contains(r.Message(), "production") || !strings.Contains(r.Message(), "staging") {
		t.Errorf("entries that differ: state %d: %s", r.State, r.Message())
	}
	results = w.runKinds(t, Options{Until: Choose, Locked: &Locked{Lock: l, File: "helmsrc.lock", Cluster: "production"}}, sourcev1.HelmRepositoryKind)
	if r := results["HelmChart/registry"]; r.Failure != nil || r.Pin.Version != "6.5.0" {
		t.Errorf("of one cluster: %s", r.Message())
	}
}

// TestLockedMoved changes the digests in the lock, so that the sources differ from it. That is an integrity failure,
// whether the version is compared or the bytes are fetched.
func TestLockedMoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneOfEach)
	l := w.locked(t, w.run(t, Options{}))
	const other = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, e := range l.Entries() {
		of := *e
		for _, d := range []*string{&of.Digest, &of.ManifestDigest, &of.LayerDigest} {
			if *d != "" {
				*d = other
			}
		}
		l.Put(of)
	}
	for _, mode := range []LockMode{LockedAsked, LockedOnly} {
		if err := os.RemoveAll(filepath.Join(w.dir, "artifacts")); err != nil {
			t.Fatal(err)
		}
		results := w.run(t, Options{Locked: &Locked{Lock: l, File: "helmsrc.lock", Mode: mode}})
		for name, want := range map[string]finding.Code{
			"HelmChart/index": finding.DigestMismatch, "HelmChart/bare": finding.DigestMismatch, "HelmChart/registry": finding.NotFound,
		} {
			r := results[name]
			if r.Failure == nil || mode == LockedOnly && r.Artifact() != nil {
				t.Errorf("mode %d, %s: state %d: %s", mode, name, r.State, r.Message())
				continue
			}
			class := Integrity
			if mode == LockedAsked {
				want = finding.Moved
			} else if name == "HelmChart/registry" {
				class = Permanent // a registry has no manifest of that digest
			}
			if f, _ := r.FailureFinding(); f.Code != want || f.Fix == "" || ClassOf(r.Failure) != class {
				t.Errorf("mode %d, %s: class %d: %+v", mode, name, ClassOf(r.Failure), f)
			}
		}
	}
}
