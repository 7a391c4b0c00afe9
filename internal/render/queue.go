package render

import (
	"cmp"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/kustomize"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// Objects of a cluster enter once. An object waits for missing parts: a Kustomization whose source is not available, or whose
// generator may still be built, waits in builder.parked; a built one that lacks variables in builder.waiting; a ResourceSet,
// whose inputs may come from any object, in builder.sets.

// Build builds the directories of the input that belong to the cluster.
func (c *Cluster) Build() (result *Result) {
	b := c.builder()
	c.r.arrived = newArrivals()
	// After a panic, here or in a library, the findings in plain files are still reported.
	defer func() {
		if p := recover(); p != nil {
			b.notice(Notice{Text: string(debug.Stack()), Debug: true})
			b.errs = append(b.errs, &buildError{err: &kustomize.PanicError{Value: p}})
			result = b.result(&manifest.Build{Errors: b.errs})
		}
	}()
	b.run()
	return b.result(b.build())
}

func (b *builder) run() {
	if b.plan == nil {
		b.expandGenerators()
		return
	}
	if b.plan.idle {
		return
	}
	for _, s := range b.cluster.starts {
		b.start(s)
	}
	b.finishAll()
	b.rest()
	b.reportGenerators()
	b.warnAbsent()
	b.warnDependencies()
	if b.loose() {
		alone := b.looseStarts()
		b.errs, b.notices = append(b.errs, alone.errs...), append(b.notices, alone.notices...)
		b.rejections, b.judged = append(b.rejections, alone.rejections...), append(b.judged, alone.judged...)
	}
}

// rest builds the directories that no Kustomization led to after all: the Kustomization that should have led there is missing
// from the built objects.
func (b *builder) rest() {
	for _, dir := range b.in.Dirs {
		real, err := b.disk.absolute(dir)
		if err != nil || !b.plan.live(real) {
			continue
		}
		d := b.repository(real).directory(real)
		if d == nil || d.flux || b.taken(d.file) || d.kustomization != nil && d.kustomization.Kind == types.ComponentKind {
			continue
		}
		b.plainDirectory(real)
	}
	b.plainSets()
	b.entered = true
	b.finishAll()
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

func (b *builder) build() *manifest.Build {
	build := b.known()
	for path := range b.claimed {
		b.reached[path] = true
	}
	if b.in.Kustomized() {
		b.warnNamespaces(build.Claimed)
	}
	for _, f := range b.in.Files {
		if build.Claimed[f] {
			continue
		}
		for _, o := range f.Objects() {
			if names := b.unsetOf[o]; len(names) > 0 && !f.ReferenceOnly() {
				b.noteUnset(o, names, "", false)
			}
		}
	}
	build.Errors = b.errs
	return build
}

// warnNamespaces warns of plain manifests without a namespace: in a repository this is rarely intended.
func (b *builder) warnNamespaces(claimed map[*manifest.File]bool) {
	for _, f := range b.in.Files {
		if !f.Walked || f.ReferenceOnly() || claimed[f] {
			continue
		}
		for _, o := range f.Objects() {
			if o.NoNamespace() && o.Kind != "Secret" && o.Kind != "ConfigMap" && o.Kind != "ServiceAccount" && o.Kind != "Namespace" {
				b.warnNamespace(o, o.Namespace)
			}
		}
	}
}

func (b *builder) result(build *manifest.Build) *Result {
	b.warnUnset()
	judged := slices.DeleteFunc(slices.Clone(b.judged), func(o *manifest.Object) bool { return o.ReferenceOnly })
	notices := slices.Concat(b.notices, b.Renderer.notices)
	result := &Result{Build: build, Notices: notices, Rejections: b.rejections, Judged: judged, Incomplete: len(b.partial) > 0, Expansions: b.expansions, Here: b.here, Files: b.filesRead(), CheckoutOf: b.checkoutOf, patches: b.patched, used: b.used, trees: b.trees, closures: b.closures, kustomizations: b.judged}
	result.tracePatches()
	return result
}

func (b *builder) filesRead() []string {
	read := map[string]bool{}
	for _, dir := range slices.Sorted(maps.Keys(b.named)) {
		root := cmp.Or(b.disk.repository(dir), dir)
		for path := range b.claimed {
			if inside(root, path) && !inside(filepath.Join(root, ".git"), path) {
				read[b.display(path)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(read))
}

// Loose returns the result for passed files that no build applies, with all files that they may refer to. It returns nil if there
// are no such files, or if no passed file is applied.
func (r *Renderer) Loose(results []*Result) *Result {
	if r.passed == nil || r.plan == nil || !r.plan.known || len(results) == 0 {
		return nil
	}
	some, others := false, false
	for path := range r.passed {
		if r.byPath[path] == nil {
			continue
		}
		if r.reached[path] || r.plan.live(path) {
			others = true
		} else {
			some = true
		}
	}
	if !some || !others {
		return nil
	}
	b := r.looseStarts()
	build := &manifest.Build{Errors: b.errs, Claimed: map[*manifest.File]bool{}, Foreign: map[*manifest.File]bool{}, Opened: r.opened}
	for path, f := range r.byPath {
		build.Claimed[f] = r.reached[path] || r.plan.live(path)
		if !build.Claimed[f] {
			r.openFile(f)
		}
	}
	for _, o := range results[0].Objects {
		c := *o
		c.ReferenceOnly = true
		build.Objects = append(build.Objects, &c)
	}
	return b.result(build)
}

// looseStarts builds the passed Kustomizations and directories that no build applies, as if a cluster began with each. Their
// dependencies may be in another cluster.
func (r *Renderer) looseStarts() *builder {
	b := (&Cluster{r: r}).builder()
	b.alone = true
	for i, n := range r.plan.nodes {
		if r.passed[n.file] && !r.reached[n.file] && !r.plan.live(n.file) {
			b.start(i)
		}
	}
	b.finishAll()
	b.warnDependencies()
	return b
}
