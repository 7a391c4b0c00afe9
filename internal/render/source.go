package render

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// elsewhereError is the error of a source that is not available here, so that its Kustomizations are not built.
type elsewhereError struct {
	Source
	why     string
	unknown bool // the input does not define it

	generator *manifest.Object // that needs it, nil for a Kustomization
	at        int              // among its sources
	alias     string
}

func (e *elsewhereError) Error() string {
	if e.generator != nil {
		return fmt.Sprintf("source %s %s/%s (alias %s) is %s: nothing is made, and what takes its artifacts is not built", e.Kind, e.Namespace, e.Name, e.alias, e.why)
	}
	return fmt.Sprintf("its source %s %s/%s is %s: it is not built", e.Kind, e.Namespace, e.Name, e.why)
}

func (e *elsewhereError) Hint() string {
	hint := "name a checkout of it with " + finding.StandIn(e.Kind, e.Namespace, e.Name) + ", or with source in .helmsrc.yaml"
	switch {
	case e.unknown, e.why == notFetched, e.Kind == externalArtifact:
		return hint
	case e.Kind == "HelmChart":
		return finding.FollowFirst
	}
	return hint + finding.OrFollow
}

// sourceOf returns the source of a Kustomization: a directory that replaces it, the artifact of a generator, or the repository of
// the Kustomization itself.
func (r *Renderer) sourceOf(o *manifest.Object, f *flux, built sources) (*repository, error) {
	ref := sourceRef(o)
	stand, root, err := r.standIn(ref)
	if err != nil {
		return nil, err
	}
	if f.source = stand; stand != nil {
		return r.at(root), nil
	}
	if ref.Kind == externalArtifact {
		repo, made, err := r.fromArtifact(o, ref, built)
		f.made = made
		return repo, err
	}
	root = r.homeOf(o)
	if r.arrived.lost[ref] {
		return nil, &elsewhereError{Source: ref, why: notFetched}
	}
	source := r.sourceFor(o, built, ref)
	if why := r.elsewhere(source, ref, root, f.spec.Path); why != "" {
		return nil, &elsewhereError{Source: ref, why: why, unknown: source == nil}
	}
	return r.at(root), nil
}

// noteTree records the directory of a Kustomization's source, unless it is only assumed because the path exists.
func (b *builder) noteTree(f *flux) {
	source := sourceRef(f.object)
	url := urlOf(f.artifact.source)
	here := b.begins(source) || url != "" && slices.Contains(b.checkout(f.repo.root).remotes, lastSegment(url))
	if root, _ := file.Repository(f.repo.root); f.source != nil || here && root == f.repo.root {
		b.trees[source] = f.repo.root
	}
}

// standIn returns the directory that replaces a source, or nil: one given with --source, or a fetched tree.
func (r *Renderer) standIn(want Source) (*Source, string, error) {
	for _, s := range r.o.Sources {
		if s.Kind == want.Kind && s.Name == want.Name && (s.Namespace == "" || s.Namespace == want.Namespace) {
			root, err := absolute(s.Dir)
			if err != nil {
				return nil, "", fmt.Errorf(finding.SourceFailed, s.Dir, plainPathError(err))
			}
			return &s, root, nil
		}
	}
	for _, s := range r.arrived.trees {
		if s.key() == want.key() {
			root, err := absolute(s.Dir)
			return &s, root, err
		}
	}
	return nil, "", nil
}

func (r *Renderer) homeOf(o *manifest.Object) string {
	if r.fetchedFile(o.Pos.File) {
		return r.inputHome()
	}
	if real, err := r.disk.absolute(filepath.Dir(o.Pos.File)); err == nil {
		return r.repository(real).root
	}
	return r.repositories[0].root
}

type index struct {
	sources    map[string][]placed // in the order of the input
	data       map[string][]placed // ConfigMaps and Secrets, in the order of the input
	generators map[string][]placed // of such objects, in the cluster only

	artifactGenerators []placed            // in the order of the input
	sourcePaths        map[string][]string // of the Kustomizations of each source, by kind, namespace and name
}

// placed is an object and the real path of its file.
type placed struct {
	object *manifest.Object
	path   string
}

func newIndex(r *Renderer) *index {
	x := &index{sources: map[string][]placed{}, data: map[string][]placed{}, generators: map[string][]placed{}, sourcePaths: map[string][]string{}}
	for _, path := range r.paths {
		f := r.byPath[path]
		for _, o := range f.Kustomizations() {
			key := sourceRef(o).key()
			x.sourcePaths[key] = append(x.sourcePaths[key], manifest.At[string](o.Content, "spec", "path"))
		}
		for _, o := range f.Objects() {
			switch {
			case o.Group() == manifest.SourceGroup:
				key := datumKey(o.Kind, o.Namespace, o.Name)
				x.sources[key] = append(x.sources[key], placed{o, path})
			case isGenerator(o):
				x.artifactGenerators = append(x.artifactGenerators, placed{o, path})
			case o.Group() == "":
				key := datumKey(o.Kind, o.Namespace, o.Name)
				x.data[key] = append(x.data[key], placed{o, path})
			}
		}
		for _, m := range f.Generators() {
			key := datumKey(m.Generates.Kind, m.Generates.Namespace, m.Generates.Name)
			x.generators[key] = append(x.generators[key], placed{m.Object, path})
		}
	}
	return x
}

// sources holds objects of source.toolkit.fluxcd.io by kind, namespace and name.
type sources map[string]*manifest.Object

// add adds the first source of a name. It reports whether it did.
func (s sources) add(o *manifest.Object) bool {
	key := datumKey(o.Kind, o.Namespace, o.Name)
	if s[key] != nil {
		return false
	}
	s[key] = o
	return true
}

// sourceFor returns the source that an object names, or nil. It looks at built sources first, then at files. If
// several files define it, as for several clusters, it returns the nearest one.
func (r *Renderer) sourceFor(o *manifest.Object, built sources, want Source) *manifest.Object {
	key := want.key()
	if source := built[key]; source != nil {
		return source
	}
	found := r.index.sources[key]
	if len(found) < 2 {
		for _, p := range found {
			return p.object
		}
		return nil
	}
	return r.nearestFirst(o, found)[0].object
}

// nearestFirst sorts objects in files by their distance from another object.
func (r *Renderer) nearestFirst(o *manifest.Object, list []placed) []placed {
	list = slices.Clone(list)
	dir, err := r.disk.absolute(filepath.Dir(o.Pos.File))
	if err != nil {
		return list
	}
	slices.SortStableFunc(list, func(a, b placed) int {
		return stepsTo([]string{filepath.Dir(a.path)}, dir) - stepsTo([]string{filepath.Dir(b.path)}, dir)
	})
	return list
}
