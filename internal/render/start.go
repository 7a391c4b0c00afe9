package render

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// A cluster begins with nodes of the plan. That a build leads to one of them only shows once its parent is built, which
// patches it, say. What the start gave is withdrawn then, and what became of it enters.

// maxRevisions bounds how often a Kustomization changes itself.
const maxRevisions = 4

// start builds what nothing else builds, as far as is known.
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
			// If it is the start of the Kustomization, the directory holds what builds it: only that was ever applied by hand.
			b.superseded[i] = true
			b.withdraw(b.repository(n.dir).directory(n.dir).object.Pos.File, f.object)
			if f.from == i {
				b.startOf[f.object] = i
			}
		}
	}
}

// revises reports whether a Kustomization is one that a start leads to itself, with patches and variables: that is what the
// cluster has in the end. What it gave without them is withdrawn.
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

// withdraw takes back what a Kustomization or a directory gave, and all that this led to. One object is kept.
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

// nameOf is what a Kustomization is called as the maker of objects, "" for an object of another kind.
func nameOf(o *manifest.Object) string {
	if o.Group() != manifest.KustomizeGroup || o.Kind != "Kustomization" {
		return ""
	}
	return "Kustomization " + o.Namespace + "/" + o.Name
}

// ownPath is the path of a Kustomization. One that applies itself substitutes its own variables in it.
func (r *Renderer) ownPath(o *manifest.Object, spec *kustomizev1.KustomizationSpec) string {
	if spec.PostBuild == nil || !strings.Contains(spec.Path, "${") || strings.HasPrefix(o.Built, "Kustomization ") {
		return spec.Path
	}
	v := newVariables(UnsetFails, r.budget)
	v.set(spec.PostBuild.Substitute, public)
	v.set(r.o.Variables, public)
	text, _, err := v.text(r.ctx, spec.Path)
	if err != nil {
		return spec.Path
	}
	return text
}

// slashed is a path of a Kustomization, relative to the root of its repository.
func slashed(path string) string {
	return strings.TrimPrefix(filepath.ToSlash(filepath.Clean("/"+filepath.FromSlash(path))), "/")
}

// lose records what is lost with a Kustomization that cannot be built, as far as its path shows it. It reports whether
// the input is about any of it.
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
