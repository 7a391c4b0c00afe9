package reconcile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// A StandIn is what an artifacts directory holds of a source.
type StandIn struct {
	// Path is absolute: the artifact of the source or, for a HelmRepository, the artifacts directory.
	Path string
	// Archives are those of a HelmRepository's charts, slash-separated and relative to Path.
	Archives []string
}

// StandIns returns what earlier runs left of every source in a store: for a HelmRepository the charts that were fetched
// from it, for other sources their artifact. Each artifact is checked against its digest; one that was altered is among
// the errors, which answer Integrity, and so is a record that cannot be read.
func StandIns(st *store.Store, now func() time.Time) (map[store.Key]StandIn, []error) {
	results, failures := Remembered(st, "", now)
	found := map[store.Key]StandIn{}
	for _, r := range results {
		obj := r.Object.Object
		if r.Failure != nil && ClassOf(r.Failure) == Integrity {
			failures = append(failures, fmt.Errorf("%s: %w", obj, r.Failure))
		}
		if r.artifact() == nil {
			continue
		}
		switch obj.Kind {
		case sourcev1.HelmChartKind:
			ref := manifest.At[map[string]any](obj.Content, "spec", "sourceRef")
			if name, _ := ref["name"].(string); ref["kind"] == sourcev1.HelmRepositoryKind {
				key := store.NewKey(sourcev1.HelmRepositoryKind, obj.Namespace, name)
				found[key] = StandIn{Path: st.Dir(), Archives: append(found[key].Archives, r.artifact().Path)}
			}
		case sourcev1.HelmRepositoryKind: // its index names archives that are elsewhere
		default:
			found[inventory.KeyOf(obj)] = StandIn{Path: filepath.Join(st.Dir(), filepath.FromSlash(r.artifact().Path))}
		}
	}
	return found, failures
}

// openLocalTree reads what stands in for a GitRepository or a Bucket: a directory, or the archive of an artifact.
func (p *treeReconciliation) openLocalTree(ctx context.Context, name string, o git.WorktreeOptions) (*fetch.Tree, error) {
	info, err := os.Stat(name)
	if err != nil || info.IsDir() || !strings.HasSuffix(name, ".tar.gz") {
		return p.openWorktree(ctx, name, o)
	}
	root, err := p.r.scratch()
	if err != nil {
		return nil, temporaryFailure(err)
	}
	archive, err := file.Open(name)
	if err != nil {
		return nil, status.ReadOperationFailed.Wrap(err)
	}
	defer archive.Close()
	if err := tree.Unpack(ctx, archive, root, tree.Limits{}); err != nil {
		return nil, status.ReadOperationFailed.Wrap(fmt.Errorf("failed to unpack '%s': %w", name, err))
	}
	return p.openWorktree(ctx, root.Name(), git.WorktreeOptions{Plain: true})
}
