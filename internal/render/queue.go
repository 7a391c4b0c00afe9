package render

import (
	"errors"
	"slices"

	"github.com/helmsrc/helmsrc/internal/generate"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// Objects of a cluster enter once. An object waits for missing parts: a Kustomization whose source is not available, or whose
// generator may still be built, waits in builder.parked; a built one that lacks variables in builder.waiting; a ResourceSet,
// whose inputs may come from any object, in builder.sets.

// enter builds a Kustomization. One with an artifact waits if its generator was not built yet.
func (b *builder) enter(o *manifest.Object) {
	if !b.ready(o) {
		b.parked = append(b.parked, parked{object: o, from: b.from})
		return
	}
	b.kustomization(o)
}

// ready reports whether the source tree of a Kustomization is certain.
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

// locateOrPark builds a Kustomization, or parks it if its source may be fetched.
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

// finishAll continues with waiting objects until no more can be done. If all lack something, it first fetches sources whose
// Secrets are known, as they may contain variables. Then it finishes the first Kustomization without its variables, then expands
// the next ResourceSet, then fetches the other sources. It requests a source that the cluster does not define after all starts
// have entered.
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

// wake continues with the first parked Kustomization that fits, preferring ready ones. It reports whether there
// was one.
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

// finishComplete finishes the waiting Kustomizations whose ConfigMaps and Secrets are all known. It reports whether there were
// any.
func (b *builder) finishComplete() bool {
	pending, found := b.waiting, false
	b.waiting = nil
	var later []*flux
	for i, f := range pending {
		pending[i] = nil // release its objects once it is finished
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

// finishFirst finishes the first waiting Kustomization with the known variables, preferring one that lacks only optional ones.
// It reports whether there was one.
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
