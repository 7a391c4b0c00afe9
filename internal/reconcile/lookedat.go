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

// wholeTree stands for everything in a repository.
const wholeTree = "."

// generates reports whether artifacts are generated in the run: it is only known then which files they are made of.
func generates(objects []*admission.Admitted) bool {
	return slices.ContainsFunc(objects, func(adm *admission.Admitted) bool {
		switch adm.Typed.(type) {
		case *swv1.ArtifactGenerator, *sourcev1.ExternalArtifact:
			return true
		}
		return false
	})
}

// lookedAt lists which paths of each GitRepository the objects look at. A repository
// that is not among the objects has no list: another one includes it.
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

// chartPaths are a chart in a repository and the files that may keep it out of the
// artifact.
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

// only are the files that are enough of a repository to look at its charts, nil for
// all of them. What is stored, included or given to dependencies is the whole.
func (p *gitReconciliation) only(obj *sourcev1.GitRepository) []string {
	paths := p.r.looked[p.key]
	o := &p.r.o
	if readsOutside(p.operated()) || p.r.generates {
		return nil
	}
	if o.Until == Fetch || o.VerifyDependencies || obj.Spec.RecurseSubmodules || len(obj.Spec.Include) > 0 || slices.Contains(paths, wholeTree) {
		return nil
	}
	return paths
}
