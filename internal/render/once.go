package render

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/kustomize/api/types"
)

// buildResult is what a build gave. It is shared: copy before changing it.
type buildResult struct {
	objects []built
	patches []patchUse // with targets
	err     error
}

// buildOnce builds what is the same for several clusters only once.
func (r *Renderer) buildOnce(repo *repository, dir, file string, k *types.Kustomization, replace map[string][]byte) buildResult {
	text, err := json.Marshal(k)
	if err != nil {
		return buildResult{err: err}
	}
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%q %q %q", dir, file, text)
	for _, path := range slices.Sorted(maps.Keys(replace)) {
		_, _ = fmt.Fprintf(h, " %q %q", path, replace[path])
	}
	key := string(h.Sum(nil))
	known, ok := r.builds[key]
	if !ok {
		known = repo.build(r.ctx, dir, file, k, replace)
		r.builds[key] = known
	}
	return known
}
