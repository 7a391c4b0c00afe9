package render

import (
	"errors"
	"maps"
	"slices"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// A cluster begins with nodes of the plan. Only the build of a parent shows that it leads to one of them, and may patch it. Then
// the objects of the start are withdrawn, and the built Kustomization enters.

// maxRevisions is the limit for a Kustomization that changes itself.
const maxRevisions = 4

// start builds a node that, as far as is known, no other node builds.
func (b *builder) start(i int) {
	n := b.plan.nodes[i]
	b.from = i
	switch {
	case b.superseded[i]:
	case n.object != nil:
		b.startOf[n.object] = i
		b.enter(n.object)
	default:
		b.plainDirectory(n.dir)
	}
}

func (b *builder) supersede(f *flux, c *closure) {
	for _, i := range b.cluster.starts {
		n := b.plan.nodes[i]
		switch {
		case !c.files[n.file], b.superseded[i], b.superseded[f.from] && f.from != i:
		case f.from != i && n.object != nil:
			b.superseded[i] = true
			if key := n.object.Namespace + "/" + n.object.Name; b.kustomizations[key] == n.object {
				delete(b.kustomizations, key)
				b.withdraw("Kustomization "+key, nil)
			}
		case n.object == nil:
			// If the directory is the start of this Kustomization, it contains it: only the directory was applied by hand.
			b.superseded[i] = true
			b.withdraw(b.repository(n.dir).directory(n.dir).object.Pos.File, f.object)
			if f.from == i {
				b.startOf[f.object] = i
			}
		}
	}
}

// revises reports whether a Kustomization is the built form of a start that applies itself, with patches and variables: this form
// stays in the cluster. revises then withdraws the objects of the start.
func (b *builder) revises(first, o *manifest.Object) bool {
	i, ok := b.startOf[first]
	if !ok || first.Pos != o.Pos || b.from != i || sameSpec(first, o) || b.revisions[i] == maxRevisions {
		return false
	}
	b.revisions[i]++
	b.startOf[o] = i
	b.withdraw("Kustomization "+o.Namespace+"/"+o.Name, nil)
	return true
}

// withdraw removes the objects of a Kustomization or directory and everything that they led to, except one object.
func (b *builder) withdraw(by string, keep *manifest.Object) {
	of := func(o *manifest.Object) bool { return o != nil && o != keep && (o.Built == by || nameOf(o) == by) }
	b.withdrawn[by]++
	var below []string
	for _, key := range slices.Sorted(maps.Keys(b.kustomizations)) {
		if o := b.kustomizations[key]; o != keep && o.Built == by {
			delete(b.kustomizations, key)
			below = append(below, nameOf(o))
		}
	}
	b.closures = slices.DeleteFunc(b.closures, func(c *closure) bool { return c.of == by })
	b.claimed = map[string]bool{}
	for _, c := range b.closures {
		maps.Copy(b.claimed, c.files)
	}
	b.waiting = slices.DeleteFunc(b.waiting, func(f *flux) bool { return f.name() == by })
	b.absent = slices.DeleteFunc(b.absent, func(a absence) bool { return a.flux.name() == by })
	b.parked = slices.DeleteFunc(b.parked, func(p parked) bool { return of(p.object) })
	b.sets = slices.DeleteFunc(b.sets, func(s pendingSet) bool { return of(s.object) })
	b.providers = slices.DeleteFunc(b.providers, func(p inputProvider) bool { return of(p.object) })
	b.objects = slices.DeleteFunc(b.objects, of)
	b.judged = slices.DeleteFunc(b.judged, of)
	b.partial = slices.DeleteFunc(b.partial, of)
	b.copies = slices.DeleteFunc(b.copies, func(g manifest.Generator) bool { return of(g.Object) })
	b.notices = slices.DeleteFunc(b.notices, func(n Notice) bool { return of(n.Object) })
	b.rejections = slices.DeleteFunc(b.rejections, func(r Rejection) bool { return of(r.Object) })
	b.errs = slices.DeleteFunc(b.errs, func(err error) bool {
		e, ok := errors.AsType[*manifest.ObjectError](err)
		failed, built := errors.AsType[*buildError](err)
		if spoiling, ok := errors.AsType[*spoilingError](err); ok && spoiling.name == by {
			return true
		}
		return ok && (e.Object.Built == by || nameOf(e.Object) == by) || built && failed.of == by
	})
	for name, uses := range b.unset {
		b.unset[name] = slices.DeleteFunc(uses, func(u unsetUse) bool { return of(u.object) })
	}
	clear(b.made)
	maps.DeleteFunc(b.sources, func(_ string, o *manifest.Object) bool { return of(o) })
	maps.DeleteFunc(b.found, func(_ string, d *datum) bool { return d.built == by })
	for _, name := range below {
		b.withdraw(name, keep)
	}
}

// lose claims the files of a Kustomization that cannot be built, as far as its path shows them. It reports whether
// the input is about any of them.
func (b *builder) lose(o *manifest.Object) bool {
	path := manifest.At[string](o.Content, "spec", "path")
	real := ""
	if path != "" && b.plan.known {
		real = b.directoryAt(b.homeOf(o), slashed(path))
	}
	lost := false
	c := newClosure()
	if real != "" {
		b.lostPaths[real] = true
		for path := range b.byPath {
			if inside(real, path) {
				c.files[path] = true
			}
		}
	}
	for _, n := range b.plan.nodes {
		if n.object != nil && n.object.Pos == o.Pos {
			for path := range n.claims.files {
				c.files[path] = true
			}
		}
	}
	b.claim(c)
	lost = b.passed != nil && b.touches(c)
	return b.abandon(c) || lost
}
