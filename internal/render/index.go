package render

import (
	"cmp"
	"path/filepath"
	"slices"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// index finds objects of files by what they are called.
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
