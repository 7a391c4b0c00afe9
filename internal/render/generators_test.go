package render

import (
	"fmt"
	"testing"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// TestChainedGenerators counts the work for generators that use each other's artifacts, with a Kustomization for each.
func TestChainedGenerators(t *testing.T) {
	for _, chained := range []int{20, maxDepth} {
		dir := t.TempDir()
		files := map[string]string{".git/HEAD": "ref: refs/heads/main\n", "apps/kustomization.yaml": "resources: [repository.yaml]\n"}
		files["apps/repository.yaml"] = fmt.Sprintf(aRepository, "podinfo")
		text := ""
		for i := range chained {
			source := `{alias: a, kind: GitRepository, name: flux-system}`
			from := "@a/apps/**"
			if i > 0 {
				source, from = fmt.Sprintf(`{alias: a, kind: ExternalArtifact, name: a%d}`, i-1), "@a/**"
			}
			text += fmt.Sprintf("---\napiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {name: g%d, namespace: flux-system}\n"+
				"spec:\n  sources: [%s]\n  artifacts: [{name: a%d, copy: [{from: %q, to: \"@artifact/\"}]}]\n", i, source, i, from)
			text += fmt.Sprintf("---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: k%d, namespace: flux-system}\n"+
				"spec: {interval: 10m, prune: true, path: ./, sourceRef: {kind: ExternalArtifact, name: a%d}}\n", i, i)
		}
		files["all.yaml"] = text
		write(t, dir, files)
		in := manifest.Read(t.Context(), manifest.Options{Files: []string{dir}, Recursive: true})
		r := New(t.Context(), in, Options{Namespace: "default"})
		for _, c := range r.Clusters() {
			c.Build()
		}
		if len(r.builds) != chained || len(r.listings) != 1 || len(r.specs) != chained {
			t.Errorf("%d generators: %d builds, %d listings, %d specs", chained, len(r.builds), len(r.listings), len(r.specs))
		}
		if r.outputs > 3*chained {
			t.Errorf("%d generators: %d were worked out", chained, r.outputs)
		}
		asking := r.index.artifactGenerators[0].object
		if near := r.generatorsNear(asking, "flux-system", "a7"); len(near) != 1 || near[0].object.Name != "g7" {
			t.Errorf("%d generators: %d are looked at for one artifact", chained, len(near))
		}
	}
}
