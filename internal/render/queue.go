package render

import (
	"errors"
	"slices"

	"github.com/helmsrc/helmsrc/internal/generate"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// Objects of a cluster enter once. What one needs and is not there yet parks it: a Kustomization whose source is not here, or
// made by a generator that may come, is in builder.parked; one that is built and lacks variables in builder.waiting; a
// ResourceSet, which may take its inputs from anything, in builder.sets.

// parked is a Kustomization that waits for the tree it is built from, and the start that led to it.
type parked struct {
	object *manifest.Object
	from   int
	need   *Need // the source whose tree is not here, nil for a generator that may come
}

// enter builds a Kustomization. One from an artifact waits, if no generator that was built makes it: it may come.
func (b *builder) enter(o *manifest.Object) {
	if !b.ready(o) {
		b.parked = append(b.parked, parked{object: o, from: b.from})
		return
	}
	b.kustomization(o)
}

// ready reports whether it is known for certain which tree a Kustomization is built from.
func (b *builder) ready(o *manifest.Object) bool {
	ref := sourceRef(o)
	if ref.Kind != externalArtifact {
		return true
	}
	if stand, _, _ := b.standIn(ref); stand != nil {
		return true
	}
	m := b.generatorFor(o, ref.Namespace, ref.Name, b.sources, nil)
	return m != nil && b.sources[datumKey(generate.Kind, ref.Namespace, m.object.Name)] == m.object
}

// locateOrPark goes on with a Kustomization. One whose source may be fetched is parked.
func (b *builder) locateOrPark(o *manifest.Object) {
	f, err := b.locate(o, b.sources)
	if err == nil {
		b.construct(f)
		return
	}
	if e, elsewhere := errors.AsType[*elsewhereError](err); elsewhere && b.o.Fetch != nil && !o.ReferenceOnly {
		n := Need{e.Source, e.generator != nil}
		if !b.arrived.asked[n] && !b.arrived.lost[n.Source] {
			b.parked = append(b.parked, parked{o, b.from, &n})
			return
		}
	}
	b.unbuilt(o, err)
}

// finishAll goes on with what waits until nothing does that can. Where everything lacks something, first sources are fetched
// whose Secrets are there, as they may hold variables; then the first Kustomization goes on without its variables, then the
// next ResourceSet makes its objects, then the other sources are fetched. A source that is not in the cluster is requested once all
// has entered.
func (b *builder) finishAll() {
	for b.ctx.Err() == nil {
		switch {
		case b.finishComplete(), b.wake(b.answered), b.fetch(b.certain), b.finishFirst(), b.expandNext(), b.fetch(b.defined), b.wake(func(p parked) bool { return p.need == nil }):
		case b.entered && b.fetch(func(Need) bool { return true }):
		default:
			return
		}
	}
	b.waiting = nil
}

func (b *builder) answered(p parked) bool {
	return p.need != nil && (b.arrived.asked[*p.need] || b.arrived.lost[p.need.Source])
}

// wake goes on with the first of certain Kustomizations that are parked, those that are ready before others. It reports
// whether there was one.
func (b *builder) wake(fits func(parked) bool) bool {
	next := slices.IndexFunc(b.parked, func(p parked) bool { return fits(p) && b.ready(p.object) })
	if next < 0 {
		next = slices.IndexFunc(b.parked, fits)
	}
	if next < 0 {
		return false
	}
	p := b.parked[next]
	b.parked = slices.Delete(b.parked, next, next+1)
	b.from = p.from
	if p.need == nil {
		b.kustomization(p.object)
	} else {
		b.locateOrPark(p.object)
	}
	return true
}

// finishComplete finishes the Kustomizations that wait for variables all of whose ConfigMaps and Secrets are there. It
// reports whether there were any.
func (b *builder) finishComplete() bool {
	pending, found := b.waiting, false
	b.waiting = nil
	var later []*flux
	for i, f := range pending {
		pending[i] = nil // what was built of it is not needed once it is finished
		if b.ctx.Err() == nil && b.complete(f, true) {
			found = true
			b.finish(f)
		} else {
			later = append(later, f)
		}
	}
	b.waiting = append(later, b.waiting...)
	return found
}

// finishFirst finishes the first Kustomization that waits with what there is, one that only lacks what is optional before
// others. It reports whether there was one.
func (b *builder) finishFirst() bool {
	if len(b.waiting) == 0 {
		return false
	}
	first := max(0, slices.IndexFunc(b.waiting, func(f *flux) bool { return b.complete(f, false) }))
	f := b.waiting[first]
	b.waiting = slices.Delete(b.waiting, first, first+1)
	b.borrow(f)
	b.finish(f)
	return true
}
