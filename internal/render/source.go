package render

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// elsewhereError is a source that is not available here. Nothing of it is built.
type elsewhereError struct {
	kind, namespace, name, why string
	unknown                    bool // the input does not say where it is

	generator *manifest.Object // that needs it, nil for a Kustomization
	at        int              // among its sources
	alias     string
}

func (e *elsewhereError) Error() string {
	if e.generator != nil {
		return fmt.Sprintf("source %s %s/%s (alias %s) is %s: nothing is made, and what takes its artifacts is not built", e.kind, e.namespace, e.name, e.alias, e.why)
	}
	return fmt.Sprintf("its source %s %s/%s is %s: it is not built", e.kind, e.namespace, e.name, e.why)
}

func (e *elsewhereError) Hint() string {
	hint := "name a checkout of it with " + finding.StandIn(e.kind, e.namespace, e.name) + ", or with source in .helmsrc.yaml"
	switch {
	case e.unknown, e.why == notFetched, e.kind == externalArtifact:
		return hint
	case e.kind == "HelmChart":
		return finding.FollowFirst
	}
	return hint + finding.OrFollow
}

// sourceOf is the source of a Kustomization: a directory that stands in for it, the artifact that a generator makes, or the
// repository that the Kustomization itself is in.
func (r *Renderer) sourceOf(o *manifest.Object, f *flux, built sources) (*repository, error) {
	ref := f.spec.SourceRef
	namespace := cmp.Or(ref.Namespace, o.Namespace)
	stand, root, err := r.standIn(ref.Kind, namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	if f.source = stand; stand != nil {
		return r.at(root), nil
	}
	if ref.Kind == externalArtifact {
		repo, made, err := r.fromArtifact(o, namespace, ref.Name, built)
		f.made = made
		return repo, err
	}
	root = r.homeOf(o)
	if r.unfetched(ref.Kind, namespace, ref.Name) {
		return nil, &elsewhereError{kind: ref.Kind, namespace: namespace, name: ref.Name, why: notFetched}
	}
	source := r.sourceFor(o, built, ref.Kind, namespace, ref.Name)
	if why := r.elsewhere(source, ref, namespace, root, f.spec.Path); why != "" {
		return nil, &elsewhereError{kind: ref.Kind, namespace: namespace, name: ref.Name, why: why, unknown: source == nil}
	}
	return r.at(root), nil
}

// noteTree notes where the files of a Kustomization's source are, unless that is assumed only because the path is there.
func (b *builder) noteTree(f *flux) {
	ref := f.spec.SourceRef
	source := Source{Kind: ref.Kind, Namespace: cmp.Or(ref.Namespace, f.object.Namespace), Name: ref.Name}
	url := urlOf(f.artifact.source)
	here := b.begins(ref, source.Namespace) || url != "" && slices.Contains(b.checkout(f.repo.root).remotes, lastSegment(url))
	if f.source != nil || here && repositoryRoot(f.repo.root, "") == f.repo.root {
		b.trees[source] = f.repo.root
	}
}

// standIn is the directory that --source names for a source, nil if there is none.
func (r *Renderer) standIn(kind, namespace, name string) (*Source, string, error) {
	for _, s := range r.o.Sources {
		if s.Kind == kind && s.Name == name && (s.Namespace == "" || s.Namespace == namespace) {
			root, err := absolute(s.Dir)
			if err != nil {
				return nil, "", fmt.Errorf(finding.SourceFailed, s.Dir, plainPathError(err))
			}
			return &s, root, nil
		}
	}
	for _, s := range r.arrived.trees {
		if s.Kind == kind && s.Name == name && s.Namespace == namespace {
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
	dir := filepath.Dir(o.Pos.File)
	if root, ok := r.roots[dir]; ok {
		return root
	}
	if real, err := absolute(dir); err == nil {
		r.roots[dir] = r.repository(real).root
		return r.roots[dir]
	}
	return r.repositories[0].root
}

type index struct {
	sources    map[string][]placed // in the order of the input
	data       map[string][]placed // ConfigMaps and Secrets, in the order of the input
	generators map[string][]placed // what a controller makes them of in the cluster

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
			key := sourceKey(o)
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

// sourceKey is the kind, namespace and name of the source of a Kustomization.
func sourceKey(o *manifest.Object) string {
	ref := func(name string) string { return manifest.At[string](o.Content, "spec", "sourceRef", name) }
	return datumKey(ref("kind"), cmp.Or(ref("namespace"), o.Namespace), ref("name"))
}

// sources are GitRepositories and their like, by kind, namespace and name.
type sources map[string]*manifest.Object

// add keeps the first one of a name.
func (s sources) add(o *manifest.Object) {
	if key := datumKey(o.Kind, o.Namespace, o.Name); s[key] == nil {
		s[key] = o
	}
}

// sourceFor looks for a source that an object names, among what was built, then in the files: in the nearest, as several clusters
// may have sources of one name. It returns nil if there is none.
func (r *Renderer) sourceFor(o *manifest.Object, built sources, kind, namespace, name string) *manifest.Object {
	key := datumKey(kind, namespace, name)
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

// nearestFirst sorts objects of files by how far away they are from another one.
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
