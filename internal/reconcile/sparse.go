package reconcile

import (
	"path"
	"path/filepath"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/tree"
)

const wholeTree = "."

// lookedAt returns the paths of each GitRepository that the objects read. A repository
// that is not among the objects has no list: another repository includes it.
func lookedAt(objects []*admission.Admitted) map[store.Key][]string {
	paths := map[store.Key][]string{}
	for _, adm := range objects {
		if repo, ok := adm.Typed.(*sourcev1.GitRepository); ok {
			paths[keyOf(adm)] = append(paths[keyOf(adm)], tree.IgnoreFile)
			for _, include := range repo.Spec.Include {
				key := store.NewKey(sourcev1.GitRepositoryKind, adm.Object.Namespace, include.GitRepositoryRef.Name)
				paths[key] = append(paths[key], wholeTree)
			}
		}
	}
	for _, adm := range objects {
		obj, ok := adm.Typed.(*sourcev1.HelmChart)
		if !ok || obj.Spec.SourceRef.Kind != sourcev1.GitRepositoryKind {
			continue
		}
		key := store.NewKey(sourcev1.GitRepositoryKind, adm.Object.Namespace, obj.Spec.SourceRef.Name)
		if _, known := paths[key]; known {
			paths[key] = append(paths[key], chartPaths(obj.Spec.Chart)...)
		}
	}
	return paths
}

// chartPaths returns the path of a chart in a repository and of the ignore files
// that may exclude it from the artifact.
func chartPaths(chart string) []string {
	name := path.Clean("/" + filepath.ToSlash(chart))[1:]
	if name == "" {
		return []string{wholeTree}
	}
	paths := []string{name}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		paths = append(paths, path.Join(dir, tree.IgnoreFile))
	}
	return paths
}

// generates reports whether the run generates artifacts: only the generation determines which files of a source it needs.
func generates(objects []*admission.Admitted) bool {
	return slices.ContainsFunc(objects, func(adm *admission.Admitted) bool {
		switch adm.Typed.(type) {
		case *swv1.ArtifactGenerator, *sourcev1.ExternalArtifact:
			return true
		}
		return false
	})
}
