package inventory

import (
	"cmp"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/store"
)

// maxTraced is the largest number of generators in a cycle for which the shortest path is searched.
const maxTraced = 64

// CycleError is a cycle of objects that wait for each other's artifacts.
type CycleError struct{ text string }

func (e *CycleError) Error() string { return e.text }

// Finding returns the code of the error.
func (*CycleError) Finding() finding.Code { return finding.DependencyCycle }

// Cycle returns an error if a generator waits for itself.
func (inv *Inventory) Cycle(obj *manifest.Object) error {
	all := inv.Derivations()
	knot := all.knots[obj]
	if knot == nil {
		return nil
	}
	path, more := knot[:1], len(knot)-1
	if len(knot) <= maxTraced {
		s := &knotSearch{inv: inv, all: all}
		path, more = nil, 0
		for _, source := range s.within(knot)(obj) {
			if other := finding.DependencyPath(source, obj, s.within(knot)); path == nil || other != nil && len(other) < len(path) {
				path = other
			}
		}
	}
	return &CycleError{"cycle of ArtifactGenerators: " + cycle(path, more)}
}

// within returns a function for the sources of a generator that are in a knot.
func (s *knotSearch) within(knot []*manifest.Object) func(*manifest.Object) []*manifest.Object {
	return func(obj *manifest.Object) []*manifest.Object {
		return slices.DeleteFunc(s.sourcesOf(obj), func(o *manifest.Object) bool { return !slices.Contains(knot, o) })
	}
}

// IncludeCycle returns an error if a repository includes itself through another repository: the two would wait for each other
// forever.
func (inv *Inventory) IncludeCycle(namespace, name, included string) error {
	path := finding.DependencyPath(included, name, func(name string) []string {
		var names []string
		if adm, err := inv.Find(sourcev1.GitRepositoryKind, namespace, name); err == nil {
			for _, i := range adm.Typed.(*sourcev1.GitRepository).Spec.Include {
				names = append(names, i.GitRepositoryRef.Name)
			}
		}
		return names
	})
	if path == nil {
		return nil
	}
	for i := range path {
		path[i] = namespace + "/" + path[i]
	}
	return &CycleError{"cycle of GitRepositories that include each other: " + finding.Cycle(path, 0)}
}

func cycle(path []*manifest.Object, more int) string {
	var names []string
	for _, o := range path {
		names = append(names, o.Namespace+"/"+o.Name)
	}
	return finding.Cycle(names, more)
}

// findKnots groups the generators that wait for themselves or for each other: Tarjan's strongly connected components,
// in linear time in the number of sources.
func (inv *Inventory) findKnots(all *derivations) {
	s := &knotSearch{inv: inv, all: all, number: map[*manifest.Object]int{}, low: map[*manifest.Object]int{}, on: map[*manifest.Object]bool{}}
	all.knots = map[*manifest.Object][]*manifest.Object{}
	for _, obj := range all.objects {
		if isGenerator(obj) && s.number[obj] == 0 {
			s.visit(obj)
		}
	}
}

// knotSearch is a depth-first search along the sources of generators.
type knotSearch struct {
	inv         *Inventory
	all         *derivations
	number, low map[*manifest.Object]int
	way         []*manifest.Object
	on          map[*manifest.Object]bool
}

func (s *knotSearch) visit(obj *manifest.Object) {
	n := len(s.number) + 1
	s.number[obj], s.low[obj], s.on[obj] = n, n, true
	s.way = append(s.way, obj)
	itself := false
	for _, next := range s.sourcesOf(obj) {
		if itself = itself || next == obj; s.number[next] == 0 {
			s.visit(next)
			s.low[obj] = min(s.low[obj], s.low[next])
		} else if s.on[next] {
			s.low[obj] = min(s.low[obj], s.number[next])
		}
	}
	if s.low[obj] != n {
		return
	}
	from := len(s.way) - 1
	for s.way[from] != obj {
		from--
	}
	knot := slices.SortedFunc(slices.Values(s.way[from:]), func(a, b *manifest.Object) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	s.way = s.way[:from]
	for _, o := range knot {
		s.on[o] = false
		if len(knot) > 1 || itself {
			s.all.knots[o] = knot
		}
	}
}

// sourcesOf returns the generators that make the sources of a generator.
func (s *knotSearch) sourcesOf(obj *manifest.Object) []*manifest.Object {
	adm, err := s.inv.Admit(obj)
	if err != nil {
		return nil
	}
	var list []*manifest.Object
	for _, ref := range adm.Typed.(*swv1.ArtifactGenerator).Spec.Sources {
		namespace := cmp.Or(ref.Namespace, obj.Namespace)
		source := s.all.byKey[store.NewKey(ref.Kind, namespace, ref.Name)]
		if ref.Kind == sourcev1.ExternalArtifactKind && source != nil && source.Origin != nil && isGenerator(source.Origin) {
			list = append(list, source.Origin)
		}
	}
	return list
}
