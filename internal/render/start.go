package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/kustomize"
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

// plainDirectory builds a directory that no Kustomization leads to, as kubectl apply -k would.
func (b *builder) plainDirectory(dir string) {
	r := b.repository(dir)
	d := r.directory(dir)
	f, c := &flux{object: d.object, repo: r, path: dir}, newClosure()
	result := b.buildPlain(f, c)
	by := d.object.Pos.File
	c.of = by
	b.claim(c)
	if result.err != nil {
		b.directoryFailed(r, d, c, result.err)
		return
	}
	if len(result.patches) > 0 && b.ours(r, c) {
		b.notePatches(r, nil, result.patches)
	}
	f.objects = result.objects
	b.show(f, c, nil, nil)
	b.warnRemote(c)
	since := b.withdrawn[by]
	b.overlay = c.overlay()
	defer func() { b.overlay = false }()
	for _, o := range f.objects {
		if b.withdrawn[by] != since {
			return
		}
		b.finishPlain(r, d, o, by)
	}
}

// directoryFailed reports the error of a directory. If the directory has no object of Flux, this is a notice: Flux may not use it.
func (b *builder) directoryFailed(r *repository, d *directory, c *closure, err error) {
	if lost := b.abandon(c); !lost && !b.touches(c) {
		return
	}
	if parse := c.unparsed(err); parse != nil {
		b.errs = append(b.errs, spoiledBy(parse, d.object.Pos.File, err))
		return
	}
	failed := newBuildError(d.object.Pos.File, err)
	_, outside := errors.AsType[*outsideError](err)
	_, endless := errors.AsType[*endlessError](err)
	if b.ctx.Err() == nil && !outside && !endless && (!b.ours(r, c) || b.forOthers(err)) {
		b.notice(Notice{Code: finding.ForeignBuild, Object: d.object, Excerpt: failed.at, Text: failed.text(), Hint: cmp.Or(finding.Hints(err)...)})
		return
	}
	b.errs = append(b.errs, failed)
}

// forOthers reports whether a build that no Kustomization leads to needs helm, which Flux does not run. If the input has
// Kustomizations, such a directory is for another program.
func (b *builder) forOthers(err error) bool {
	return errors.Is(err, kustomize.ErrNoHelm) && slices.ContainsFunc(b.plan.nodes, func(n *node) bool { return n.object != nil })
}

func (b *builder) ours(r *repository, c *closure) bool {
	for path := range c.files {
		f, err := r.file(path)
		if err != nil || f.MentionsFlux() {
			return true
		}
	}
	return false
}

func (b *builder) finishPlain(r *repository, d *directory, o built, by string) {
	content := o.content
	obj := b.origin(r, d.file, content, o.file, by)
	shown := visibleOf(o)
	if sealed(content) {
		opened, err := b.decrypter().object(content)
		if err != nil {
			b.sealedObject(obj, err)
			return
		}
		shown = withoutSecrets(content, opened, shown)
		content = opened
	}
	s, err := b.substitutePlain(obj, content, shown)
	if err != nil {
		b.fault(obj, err)
		return
	}
	b.noteUnset(obj, s.unset, "", false)
	b.emit(obj, s.content)
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

func sameSpec(a, b *manifest.Object) bool {
	x, err := json.Marshal(a.Content["spec"])
	if err != nil {
		return false
	}
	y, err := json.Marshal(b.Content["spec"])
	return err == nil && bytes.Equal(x, y)
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

// abandon claims the nodes that a failed build would have led to, because they mean something different alone. Another start is
// not affected and is built. A node that is there for references only is better than no node. abandon reports whether the input
// is about any of them.
func (b *builder) abandon(c *closure) (lost bool) {
	b.keepWritten(c)
	for i, n := range b.plan.nodes {
		if b.abandoned[n] || !c.files[n.file] {
			continue
		}
		b.abandoned[n] = true
		if b.cluster.begunByOther(i) {
			continue
		}
		if n.begins {
			from := b.from
			b.start(i)
			b.from = from
			continue
		}
		b.claim(n.claims)
		lost = b.abandon(n.claims) || b.passed != nil && b.touches(n.claims) || lost
	}
	return lost
}

// claimUnbuilt claims the files of a Kustomization that cannot be built, as far as its path shows them. It reports whether
// the input is about any of them.
func (b *builder) claimUnbuilt(o *manifest.Object) bool {
	path := manifest.At[string](o.Content, "spec", "path")
	real := ""
	if path != "" && b.plan.known {
		real = b.directoryAt(b.homeOf(o), slashed(path))
	}
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
	lost := b.passed != nil && b.touches(c)
	if !b.plan.known && !lost { // files that nothing applies are checked on their own
		return false
	}
	b.claim(c)
	return b.abandon(c) || lost
}
