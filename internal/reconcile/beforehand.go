package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// finishedBefore is the result of an object that an earlier part of the run reconciled, nil if it was none or another one.
func (r *Reconciler) finishedBefore(adm *admission.Admitted) *Result {
	before := r.o.Finished[keyOf(adm)]
	if before == nil || before.State == Interrupted || !reflect.DeepEqual(before.Object.Object.Content, adm.Object.Content) {
		return nil
	}
	again := *before
	again.Object = adm
	return &again
}

// Unpacked puts the files of the artifact that an object has in storage into a directory that goes with the reconciler.
func (r *Reconciler) Unpacked(ctx context.Context, result *Result) (string, error) {
	artifact := result.artifact()
	if artifact == nil {
		return "", status.NoSource(result.Object.Object.Kind, result.Object.Object.Name, causeOf(result))
	}
	root, err := r.unpack(ctx, artifact.Path)
	if err != nil {
		return "", err
	}
	return root.Name(), nil
}

// StoredArtifact is the path of the artifact that an earlier run left of a source, "" if there is none. One that was left of
// another spec does not count, unless the spec is nil. The error answers Integrity for one that was altered.
func StoredArtifact(st *store.Store, key store.Key, spec map[string]any, now func() time.Time) (string, error) {
	result, err := (&recollection{store: st, key: key, at: addresses{st.Dir(), ""}, now: now}).result()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case result.Failure != nil && ClassOf(result.Failure) == Integrity:
		return "", fmt.Errorf("%s: %w", result.Object.Object, result.Failure)
	case result.artifact() == nil:
		return "", nil
	}
	if spec != nil && !asksForSame(spec, manifest.At[map[string]any](result.Object.Object.Content, "spec")) {
		return "", nil
	}
	return filepath.Join(st.Dir(), filepath.FromSlash(result.artifact().Path)), nil
}

// asksForSame reports whether two specs of a source ask for the same: in the fields that say where something is, and what.
func asksForSame(a, b map[string]any) bool {
	return !slices.ContainsFunc([]string{
		"url", "ref", "ignore", "include", "recurseSubmodules", "sparseCheckout", "layerSelector", "endpoint", "region", "bucketName", "prefix",
		"chart", "version", "sourceRef", "valuesFiles", "ignoreMissingValuesFiles",
	}, func(field string) bool {
		x, _ := json.Marshal(a[field])
		y, _ := json.Marshal(b[field])
		return string(x) != string(y)
	})
}

// UnpackInto puts the files of an archive into a new directory below another one.
func UnpackInto(ctx context.Context, archive, parent string) (string, error) {
	from, err := file.Open(archive)
	if err != nil {
		return "", err
	}
	defer from.Close()
	dir, err := os.MkdirTemp(parent, "")
	if err != nil {
		return "", err
	}
	root, err := file.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if err := tree.Unpack(ctx, from, root, tree.Limits{}); err != nil {
		return "", fmt.Errorf("artifact untar error: %w", err)
	}
	return dir, nil
}
