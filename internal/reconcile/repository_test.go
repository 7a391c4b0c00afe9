package reconcile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTimeoutOfRepository: a HelmRepository without a timeout has the default.
func TestTimeoutOfRepository(t *testing.T) {
	t.Parallel()
	var unset sourcev1.HelmRepository
	if got := unset.GetTimeout(); got != time.Minute {
		t.Errorf("unset: %v", got)
	}
	set := sourcev1.HelmRepository{Spec: sourcev1.HelmRepositorySpec{Timeout: &metav1.Duration{Duration: 90 * time.Second}}}
	if got := set.GetTimeout(); got != 90*time.Second {
		t.Errorf("1m30s: %v", got)
	}
}

const unpublished = `
-- _repo/charts --
podinfo 6.5.0
-- all.yaml --
apiVersion: v1
kind: List
items:
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {name: a}, spec: {interval: 5m, url: "http://repo.test/a"}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {name: b}, spec: {interval: 5m, url: "http://repo.test/b"}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {name: c}, spec: {interval: 5m, url: "http://repo.test/c"}}
`

// removedFiles counts the open files of the process that have no name, if the system lists them.
func removedFiles() (n int) {
	open, _ := filepath.Glob("/proc/self/fd/*")
	for _, fd := range open {
		if name, err := os.Readlink(fd); err == nil && strings.HasSuffix(name, " (deleted)") {
			n++
		}
	}
	return n
}

type lastFiles struct {
	silent
	n *int
}

func (l lastFiles) Finished(*Result) { *l.n = removedFiles() }

// The file of an index whose download failed is closed at once, not at the end of the run.
func TestFilesOfFailedIndexes(t *testing.T) {
	w, before, after := newWorld(t, unpublished), removedFiles(), 0
	w.progress = lastFiles{n: &after}
	for name, r := range w.run(t, Options{Until: Fetch, Concurrency: 1}) {
		if r.State != Failed {
			t.Errorf("%s: %s", name, r.Message())
		}
	}
	if after > before {
		t.Errorf("%d files are open, %d were", after, before)
	}
}
