package inventory

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/store"
)

// The limits of what an error about a cycle says.
const (
	maxNamed  = 8  // generators
	maxTraced = 64 // generators that wait for each other, of which a shortest way is looked for
)

// Cycle reports that a generator waits for itself, nil if it does not.
func (inv *Inventory) Cycle(obj *manifest.Object) error {
	all := inv.Derivations()
	knot := all.knots[obj]
	if knot == nil {
		return nil
	}
	s := &knotSearch{inv: inv, all: all}
	way, more := []*manifest.Object{obj}, len(knot)-1
	if len(knot) <= maxTraced {
		way, more = s.dependencyPath(obj), 0
	}
	var names []string
	for _, o := range append(way, obj) {
		names = append(names, o.Namespace+"/"+o.Name)
	}
	if left := len(names) - maxNamed; left > 0 {
		names, more = slices.Delete(names, maxNamed-1, len(names)-1), left
	}
	if more > 0 {
		names = slices.Insert(names, len(names)-1, fmt.Sprintf("%d others", more))
	}
	return errors.New("cycle of ArtifactGenerators: " + strings.Join(names, " → "))
}

// dependencyPath is a shortest way from a generator to itself, without its end.
func (s *knotSearch) dependencyPath(obj *manifest.Object) []*manifest.Object {
	from := map[*manifest.Object]*manifest.Object{}
	for queue := []*manifest.Object{obj}; len(queue) > 0; queue = queue[1:] {
		for _, next := range s.sourcesOf(queue[0]) {
			if next == obj {
				var way []*manifest.Object
				for at := queue[0]; at != obj; at = from[at] {
					way = append(way, at)
				}
				way = append(way, obj)
				slices.Reverse(way)
				return way
			}
			if from[next] == nil && slices.Contains(s.all.knots[obj], next) {
				from[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	return []*manifest.Object{obj}
}

// findKnots finds the generators that wait for themselves, with those that do so together: Tarjan's strongly connected
// components, in as many steps as generators have sources.
func (inv *Inventory) findKnots(all *derivations) {
	s := &knotSearch{inv: inv, all: all, number: map[*manifest.Object]int{}, low: map[*manifest.Object]int{}, on: map[*manifest.Object]bool{}}
	all.knots = map[*manifest.Object][]*manifest.Object{}
	for _, obj := range all.objects {
		if isGenerator(obj) && s.number[obj] == 0 {
			s.visit(obj)
		}
	}
}

// knotSearch goes along the sources of generators.
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
	knot := slices.Clone(s.way[from:])
	s.way = s.way[:from]
	for _, o := range knot {
		s.on[o] = false
		if len(knot) > 1 || itself {
			s.all.knots[o] = knot
		}
	}
}

// sourcesOf are the generators that make what a generator takes.
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
