package kustomize

import (
	"fmt"
	"regexp"
	"slices"

	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/helmsrc/helmsrc/internal/bound"
)

// objects is the list of resources that the transformers of kustomize work on. kustomize's own list compares all resources in each
// search; this one has an index by identity. It lacks methods that are never called: the embedded interface is nil.
type objects struct {
	resmap.ResMap
	what   string // the name of the build, for errors
	budget *Budget
	list   []*resource.Resource

	current map[identity]*resource.Resource   // by current identity, nil if not known
	ever    map[identity][]*resource.Resource // by current and former identities, nil if not known

	weights map[*resource.Resource]weight
	sum     int64 // of their memory
	touched map[*resource.Resource]bool
	all     bool // all of them were touched
	fixed   bool // identities do not change

	selected int // how many objects were selected so far
}

type identity struct{ group, version, kind, namespace, name string }

func identityOf(id resid.ResId) identity {
	return identity{id.Group, id.Version, id.Kind, id.EffectiveNamespace(), id.Name}
}

func newObjects(what string, b *Budget) *objects {
	return &objects{what: what, budget: b, weights: map[*resource.Resource]weight{}, touched: map[*resource.Resource]bool{}}
}

func (m *objects) byCurrent() map[identity]*resource.Resource {
	if m.current == nil {
		m.current = make(map[identity]*resource.Resource, len(m.list))
		for _, r := range m.list {
			m.current[identityOf(r.CurId())] = r
		}
	}
	return m.current
}

// find returns the objects that have or had an identity, in their order.
func (m *objects) find(id resid.ResId) []*resource.Resource {
	if m.ever == nil {
		m.ever = make(map[identity][]*resource.Resource, len(m.list))
		for _, r := range m.list {
			m.indexEver(r)
		}
	}
	return slices.DeleteFunc(slices.Clone(m.ever[identityOf(id)]), func(r *resource.Resource) bool {
		return r.IsNilOrEmpty() || !slices.ContainsFunc(append(r.PrevIds(), r.CurId()), id.Equals)
	})
}

func (m *objects) indexEver(r *resource.Resource) {
	for _, id := range append(r.PrevIds(), r.CurId()) {
		key := identityOf(id)
		if list := m.ever[key]; len(list) == 0 || list[len(list)-1] != r {
			m.ever[key] = append(list, r)
		}
	}
}

func (m *objects) forget() { m.current, m.ever = nil, nil }

func (m *objects) touch(list ...*resource.Resource) {
	for _, r := range list {
		m.touched[r] = true
	}
}

// recount updates the weights of the touched objects, and returns an error if they exceed the budget.
func (m *objects) recount() error {
	list := m.list
	if !m.all {
		list = list[:0:0]
		for r := range m.touched {
			list = append(list, r)
		}
	}
	var work int64
	for _, r := range list {
		w := weightOf(r.YNode())
		work += w.work
		m.sum += w.memory - m.weights[r].memory
		m.weights[r] = w
	}
	m.all = false
	clear(m.touched)
	if err := m.budget.Work(m.what, work); err != nil {
		return err
	}
	return m.budget.Fits(m.what, m.sum)
}

func (m *objects) count(r *resource.Resource) error {
	w := weightOf(r.YNode())
	m.sum += w.memory - m.weights[r].memory
	m.weights[r] = w
	return m.budget.Fits(m.what, m.sum)
}

// copied updates the weight of an object after a copy into it. It returns an error for a size that only copies of copies reach.
func (m *objects) copied(r *resource.Resource, before weight) error {
	if err := m.count(r); err != nil {
		return err
	}
	if now := m.weights[r].memory; now > max(maxCopied, before.memory+maxCopied/16) {
		return m.budget.exhausted(m.what, fmt.Sprintf("%d MiB for %s", maxCopied>>20, r.CurId()))
	}
	return nil
}

// spend counts work on objects before it is done: a pass over each, and additional units for each.
func (m *objects) spend(list []*resource.Resource, units int64) error {
	var work int64
	for _, r := range list {
		work += m.weights[r].work + units
	}
	return m.budget.Work(m.what, work)
}

func (m *objects) Size() int { return len(m.list) }

func (m *objects) Resources() []*resource.Resource {
	m.all = true
	return slices.Clone(m.list)
}

// Append adds an object. It returns an error if the list has an object with the same identity.
func (m *objects) Append(r *resource.Resource) error {
	id := r.CurId()
	index := m.byCurrent()
	if index[identityOf(id)] != nil {
		return &DuplicateError{duplicateText, id}
	}
	index[identityOf(id)] = r
	if m.ever != nil {
		m.indexEver(r)
	}
	m.list = append(m.list, r)
	m.touch(r)
	return nil
}

func (m *objects) appendAll(list []*resource.Resource) error {
	for _, r := range list {
		if err := m.Append(r); err != nil {
			return err
		}
	}
	return m.recount()
}

// GetMatchingResourcesByCurrentId is called by the NamespaceTransformer only, for each object that it moved, to find another
// object with the same identity. transform checks that once, at the end.
func (m *objects) GetMatchingResourcesByCurrentId(resmap.IdMatcher) []*resource.Resource {
	return []*resource.Resource{nil}
}

// GetMatchingResourcesByAnyId returns the objects with a current or former identity that matches.
func (m *objects) GetMatchingResourcesByAnyId(matches resmap.IdMatcher) []*resource.Resource {
	var found []*resource.Resource
	for _, r := range m.list {
		if !r.IsNilOrEmpty() && slices.ContainsFunc(append(r.PrevIds(), r.CurId()), matches) {
			found = append(found, r)
		}
	}
	m.touch(found...)
	return found
}

// GetById returns the only object that has or had an identity, the target of a patch.
func (m *objects) GetById(id resid.ResId) (*resource.Resource, error) {
	if !m.fixed {
		m.forget()
	}
	found := m.find(id)
	if len(found) != 1 {
		what := "no matches"
		if len(found) > 1 {
			what = "multiple matches"
		}
		return nil, fmt.Errorf("%s for Id %s; failed to find unique target for patch %s", what, id, id)
	}
	m.touch(found[0])
	prepareMerge(found[0].YNode())
	return found[0], m.spend(found, scanWork)
}

// Select returns the objects that a selector matches, by their current or original identity.
func (m *objects) Select(s types.Selector) ([]*resource.Resource, error) {
	each := scanWork + expressionWork*int64(len(s.LabelSelector)+len(s.AnnotationSelector)) // these are parsed for each object
	if err := m.budget.Work(m.what, int64(len(m.list))*each); err != nil {
		return nil, err
	}
	expressions, err := types.NewSelectorRegex(&s)
	if err != nil {
		return nil, err
	}
	kinds, names := stepsIn(s.Group, s.Version, s.Kind), stepsIn(s.Name, s.Namespace)
	var found []*resource.Resource
	for _, r := range m.list {
		gvk := r.GetGvk()
		if err := m.matching(kinds, resid.ResId{Gvk: gvk}); err != nil {
			return nil, err
		}
		if !expressions.MatchGvk(gvk) {
			continue
		}
		now, first := r.CurId(), r.OrgId()
		if err := m.matching(names, now, first); err != nil {
			return nil, err
		}
		if !expressions.MatchNamespace(first.EffectiveNamespace()) && !expressions.MatchNamespace(now.EffectiveNamespace()) ||
			!expressions.MatchName(first.Name) && !expressions.MatchName(now.Name) {
			continue
		}
		ok, err := r.MatchesLabelSelector(s.LabelSelector)
		if ok && err == nil {
			ok, err = r.MatchesAnnotationSelector(s.AnnotationSelector)
		}
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, r)
		}
	}
	m.selected += len(found)
	m.touch(found...)
	return found, m.spend(found, 0)
}

// expressionWork is the work for each step of an expression and byte of a text.
const expressionWork = 16

// stepsIn returns the number of steps of expressions for each byte of a text. A comparison with plain text is part of a scan.
func stepsIn(expressions ...string) int {
	steps := 0
	for _, expression := range expressions {
		if regexp.QuoteMeta(expression) != expression {
			steps += bound.Steps(expression, 1, 1)
		}
	}
	return steps
}

// matching counts the work of matching expressions against identities.
func (m *objects) matching(steps int, ids ...resid.ResId) error {
	length := 0
	for _, id := range ids {
		length += len(id.Name) + len(id.Namespace) + len(id.Kind) + len(id.Group) + len(id.Version)
	}
	return m.budget.Work(m.what, expressionWork*int64(steps)*int64(length))
}

// ApplySmPatch merges a patch with the selected objects.
func (m *objects) ApplySmPatch(selected *resource.IdSet, patch *resource.Resource) error {
	cost := weightOf(patch.YNode())
	var left []*resource.Resource
	var gvk resid.Gvk
	var prepared *resource.Resource // the patch for objects of that kind
	for _, r := range m.list {
		if selected.Contains(r.CurId()) {
			if err := m.spend([]*resource.Resource{r}, cost.work); err != nil {
				return err
			}
			if prepared == nil || r.GetGvk() != gvk {
				var err error
				gvk = r.GetGvk()
				if prepared, err = patchFor(gvk, patch); err != nil {
					return err
				}
			}
			own := prepared.DeepCopy()
			rest := detach(r.YNode(), own.YNode())
			prepareMerge(r.YNode(), own.YNode())
			if err := r.ApplySmPatch(own); err != nil {
				return err
			}
			rest.restore()
			if err := m.count(r); err != nil {
				return err
			}
		}
		if !r.IsNilOrEmpty() {
			left = append(left, r)
		}
	}
	m.list = left
	return m.unique(duplicateText)
}

// patchFor returns the copy of a patch that kustomize merges with objects of a kind.
func patchFor(gvk resid.Gvk, patch *resource.Resource) (*resource.Resource, error) {
	own := patch.DeepCopy()
	if err := own.CopyMergeMetaDataFieldsFrom(patch); err != nil {
		return nil, err
	}
	own.SetGvk(gvk)
	own.SetKind(patch.GetKind())
	return own, nil
}

const duplicateText = "may not add resource with an already registered id: %s"

// DuplicateError is the error of two objects with the same identity.
type DuplicateError struct {
	format string
	id     resid.ResId
}

func (e *DuplicateError) Error() string { return fmt.Sprintf(e.format, e.id) }

// unique returns an error if two objects have the same identity.
func (m *objects) unique(message string) error {
	m.forget()
	m.current = make(map[identity]*resource.Resource, len(m.list))
	for _, r := range m.list {
		id := r.CurId()
		if m.current[identityOf(id)] != nil {
			return &DuplicateError{message, id}
		}
		m.current[identityOf(id)] = r
	}
	return nil
}

// ApplyFilter applies a filter to all objects.
func (m *objects) ApplyFilter(f kio.Filter) error {
	m.all = true
	known := make(map[*yaml.RNode]*resource.Resource, len(m.list))
	nodes := make([]*yaml.RNode, len(m.list))
	for i, r := range m.list {
		nodes[i] = &r.RNode
		known[nodes[i]] = r
	}
	filtered, err := f.Filter(nodes)
	if err != nil {
		return err
	}
	var left []*resource.Resource
	for _, n := range filtered {
		if r := known[n]; r != nil && !n.IsNilOrEmpty() {
			left = append(left, r)
		}
	}
	m.list = left
	return nil
}

func (m *objects) dropEmpty() {
	m.list = slices.DeleteFunc(m.list, func(r *resource.Resource) bool {
		gone := r.IsNilOrEmpty()
		if gone {
			m.sum -= m.weights[r].memory
			delete(m.weights, r)
			delete(m.touched, r)
		}
		return gone
	})
}

// grouped returns the objects by namespace, except cluster-scoped ones.
func (m *objects) grouped(idOf func(*resource.Resource) resid.ResId) map[string][]*resource.Resource {
	groups := map[string][]*resource.Resource{}
	for _, r := range m.list {
		if namespace := idOf(r).EffectiveNamespace(); namespace != resid.TotallyNotANamespace {
			groups[namespace] = append(groups[namespace], r)
		}
	}
	return groups
}

func (m *objects) GroupedByOriginalNamespace() map[string][]*resource.Resource {
	return m.grouped((*resource.Resource).OrgId)
}

func (m *objects) GroupedByCurrentNamespace() map[string][]*resource.Resource {
	return m.grouped((*resource.Resource).CurId)
}
