package render

import (
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// index finds objects of files by what they are called.
type index struct {
	sources    sources
	data       map[string][]placed // ConfigMaps and Secrets, in the order of the input
	generators map[string][]placed // what a controller makes them of in the cluster

	artifactGenerators []placed // in the order of the input
}

// placed is an object and the real path of its file.
type placed struct {
	object *manifest.Object
	path   string
}

func newIndex(r *Renderer) *index {
	x := &index{sources: sources{}, data: map[string][]placed{}, generators: map[string][]placed{}}
	for _, path := range r.paths {
		f := r.byPath[path]
		for _, o := range f.Objects() {
			switch {
			case o.Group() == manifest.SourceGroup:
				x.sources.add(o)
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

// sources are GitRepositories and their like, by kind, namespace and name.
type sources map[string]*manifest.Object

// add keeps the first one of a name.
func (s sources) add(o *manifest.Object) {
	if key := datumKey(o.Kind, o.Namespace, o.Name); s[key] == nil {
		s[key] = o
	}
}

// find looks for a source among what was built, then in the files. It returns nil if it is nowhere.
func (s sources) find(r *Renderer, kind, namespace, name string) *manifest.Object {
	key := datumKey(kind, namespace, name)
	if o := s[key]; o != nil {
		return o
	}
	return r.index.sources[key]
}
