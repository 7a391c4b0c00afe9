package reconcile

import (
	"testing"

	"github.com/helmsrc/helmsrc/internal/resolve"
)

// TestPublished ends a run when the published versions are known.
func TestPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneOfEach)
	results := w.run(t, Options{Until: Choose, List: true})
	for name, want := range map[string]struct {
		versions       int
		wanted, latest string
	}{
		"HelmChart/index":     {2, "6.6.0", "6.6.0"},
		"HelmChart/registry":  {2, "6.5.0", "6.6.0"},
		"OCIRepository/range": {2, "6.6.0", "6.6.0"},
	} {
		r := results[name]
		if r.Failure != nil || r.Published == nil {
			t.Errorf("%s: %v", name, r.Failure)
			continue
		}
		latest, ok := r.Published.Latest()
		if p := r.Published; !ok || len(p.Versions) != want.versions || p.Wanted != want.wanted || latest.Version != want.latest || p.Exact {
			t.Errorf("%s: %+v, latest %s", name, p, latest.Version)
		}
		if got := r.Published.Outdated(); got != resolve.Newer(want.latest, want.wanted) {
			t.Errorf("%s: outdated %t", name, got)
		}
		if c, ok := r.Published.Find("6.5.0"); !ok || !r.Published.Takes(c) {
			t.Errorf("%s: 6.5.0 is not there, or not taken", name)
		}
	}
	if r := results["HelmChart/git"]; r.Failure != nil || r.Published != nil {
		t.Errorf("a tree has no list: %+v", r)
	}
}

// TestRequireVerification fails all objects without a verified signature, and stores no artifact.
func TestRequireVerification(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneOfEach)
	results := w.run(t, Options{RequireVerification: true})
	for _, name := range []string{"HelmChart/index", "HelmChart/registry", "HelmChart/git", "HelmChart/bucket", "OCIRepository/range"} {
		r := results[name]
		if r.State != Failed || r.Artifact() != nil || ClassOf(r.Failure) != Integrity || hintOf(r.Failure.Err) == "" {
			t.Errorf("%s: state %d, artifact %+v: %s", name, r.State, r.Artifact(), r.Message())
		}
	}
	if r := results["HelmRepository/repo"]; r.State != Ready {
		t.Errorf("an index is no chart: %s", r.Message())
	}
}

// TestStoredSources stops the sources: the artifacts of an earlier run are used, whether the sources are ready or not.
func TestStoredSources(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneOfEach)
	w.run(t, Options{})
	for _, name := range []string{"repo", "git", "bucket"} {
		w.Servers[name].Close()
	}
	results := w.run(t, Options{})
	for _, name := range []string{"HelmRepository/repo", "GitRepository/git", "Bucket/bucket"} {
		if r := results[name]; r.State != Failed || ClassOf(r.Failure) != Transient || r.Artifact() == nil {
			t.Errorf("%s: state %d: %s", name, r.State, r.Message())
		}
	}
	for _, name := range []string{"HelmChart/index", "HelmChart/bare", "HelmChart/git", "HelmChart/bucket"} {
		if r := results[name]; r.State != Ready || r.Pin == nil || r.Pin.Version == "" {
			t.Errorf("%s: state %d, pin %+v: %s", name, r.State, r.Pin, r.Message())
		}
	}
	if got := results["HelmChart/git"].Dependencies; len(got) != 2 {
		t.Errorf("dependencies %+v", got)
	}
}
