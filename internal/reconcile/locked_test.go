package reconcile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/lock"
)

// packaged has charts that are packaged: of an index, with values files; of a tree, with those and with dependencies.
const packaged = oneOfEach + `
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, metadata: {name: values}, spec: {interval: 5m, chart: podinfo, version: ^6, valuesFiles: [values.yaml, absent.yaml], ignoreMissingValuesFiles: true, sourceRef: {kind: HelmRepository, name: repo}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, metadata: {name: tree}, spec: {interval: 5m, chart: ./app, reconcileStrategy: Revision, valuesFiles: [app/production.yaml], sourceRef: {kind: GitRepository, name: git}}}
-- _git/app/production.yaml --
replicas: 2
-- _git/app/values.yaml --
replicas: 1
`

// locked is the lock of what results are, as it is read from its file.
func (w *world) locked(t *testing.T, results map[string]*Result) *lock.Lock {
	t.Helper()
	l := &Locked{Lock: lock.New(), Anew: nil}
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

// TestLocked holds runs that take everything from a lock against the one that the lock was made of: they get the same bytes
// and pins, ask for no index, no list and no tag, and for nothing at all of what is in storage.
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
			if got, want := r.artifact(), first[name].artifact(); want != nil && (got.Digest != want.Digest || got.Revision != want.Revision) {
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
