package reconcile

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/store"
)

// flatten copies the charts of results into a directory, and returns the text of each failure.
func (w *world) flatten(t *testing.T, results map[string]*Result, dir string) []string {
	t.Helper()
	st, err := store.Open(filepath.Join(w.dir, "artifacts"), store.Options{
		Algorithm: godigest.SHA256, RetentionRecords: 2, Kinds: Kinds().Names(), Shared: Kinds().WithoutArtifact(), Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var list []*Result
	for _, name := range []string{"HelmRepository/repo", "HelmChart/index", "HelmChart/registry", "HelmChart/git", "HelmChart/bucket", "OCIRepository/range"} {
		if r := results[name]; r != nil {
			list = append(list, r)
		}
	}
	var failed []string
	for _, f := range Flatten(st, list, dir, chart.Limits{Archive: 1 << 20, File: 1 << 20, Unpacked: 1 << 20}) {
		failed = append(failed, f.Name+": "+f.Message)
	}
	return failed
}

// TestFlatten copies charts: again, over another file with the name, and if two charts with the same name differ.
func TestFlatten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneOfEach)
	results := w.run(t, Options{})
	artifact := map[string]*Result{"OCIRepository/range": results["OCIRepository/range"]}
	if failed := w.flatten(t, artifact, filepath.Join(w.dir, "artifact")); failed != nil {
		t.Errorf("%q", failed)
	}
	read(t, filepath.Join(w.dir, "artifact"), "podinfo-6.6.0.tgz")
	delete(results, "OCIRepository/range") // archived again, so that it has other bytes than the chart of the index
	dir := filepath.Join(w.dir, "flat")
	if failed := w.flatten(t, results, dir); failed != nil {
		t.Fatalf("%q", failed)
	}
	first := read(t, dir, "podinfo-6.6.0.tgz")
	for _, name := range []string{"podinfo-6.5.0.tgz", "app-1.2.3.tgz", "app-2.0.0.tgz"} {
		read(t, dir, name)
	}
	if err := os.WriteFile(filepath.Join(dir, "podinfo-6.6.0.tgz"), []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if failed := w.flatten(t, results, dir); failed != nil || !bytes.Equal(read(t, dir, "podinfo-6.6.0.tgz"), first) {
		t.Errorf("a file with other bytes stays: %q", failed)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 {
		t.Errorf("%d files, %v", len(entries), err)
	}

	// The bucket has another chart with the name and version of the chart in Git.
	chart := filepath.Join(w.dir, "artifacts", filepath.FromSlash(results["HelmChart/bucket"].Artifact().Path))
	double := *results["HelmChart/bucket"]
	double.common.artifact = results["HelmChart/bucket"].Artifact().DeepCopy()
	double.Artifact().Path = strings.Replace(double.Artifact().Path, "app-2.0.0", "app-1.2.3", 1)
	text, err := os.ReadFile(chart)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "artifacts", filepath.FromSlash(double.Artifact().Path)), text, 0o600); err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(w.dir, "again")
	failed := w.flatten(t, map[string]*Result{"HelmChart/git": results["HelmChart/git"], "HelmChart/bucket": &double}, again)
	if len(failed) != 1 || !strings.Contains(failed[0], "bucket: --flat: app-1.2.3.tgz would be written for this chart and for the different chart of") {
		t.Errorf("two charts of one name: %q", failed)
	}
	if _, err := os.Lstat(filepath.Join(again, "app-1.2.3.tgz")); err == nil {
		t.Error("one of them is copied")
	}

	// The artifact in storage is altered or removed after the run.
	if err := os.WriteFile(chart, []byte("altered"), 0o600); err != nil {
		t.Fatal(err)
	}
	failed = w.flatten(t, map[string]*Result{"HelmChart/bucket": results["HelmChart/bucket"]}, again)
	if len(failed) != 1 || !strings.Contains(failed[0], "the artifact was altered while it was copied") {
		t.Errorf("altered: %q", failed)
	}
	if entries, err := os.ReadDir(again); err != nil || len(entries) > 0 {
		t.Errorf("%v is left, %v", entries, err)
	}
	if err := os.Remove(chart); err != nil {
		t.Fatal(err)
	}
	if failed := w.flatten(t, map[string]*Result{"HelmChart/bucket": results["HelmChart/bucket"]}, again); len(failed) != 1 {
		t.Errorf("gone: %q", failed)
	}
	if failed := w.flatten(t, results, filepath.Join(dir, "app-1.2.3.tgz")); len(failed) == 0 {
		t.Error("a file is no directory")
	}
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
