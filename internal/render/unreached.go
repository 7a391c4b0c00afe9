package render

import (
	"slices"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// hidden reports whether nothing applies a file, so that no object can refer to it. One that was passed is judged by
// itself, with those that it may refer to.
func (b *builder) hidden(path string) bool {
	if b.plan == nil || b.plan.live(path) || b.claimed[path] || b.spared[path] {
		return false
	}
	return !b.loose()
}

// loose reports whether nothing applies any of the files that were passed.
func (b *builder) loose() bool {
	if b.passed == nil {
		return false
	}
	for path := range b.passed {
		if b.claimed[path] || b.plan.claimed[path] || b.plan.live(path) {
			return false
		}
	}
	return true
}

// Unreached lists the files that hold objects but that nothing applies, in the order of the input, once all clusters
// were built: of files that were passed only those. There are none where it is not known what is applied.
func (r *Renderer) Unreached() []string {
	if r.plan == nil || !r.plan.known {
		return nil
	}
	var names []string
	for _, path := range r.paths {
		if f := r.byPath[path]; !f.ReferenceOnly() && !r.reached[path] && !r.plan.live(path) && !r.plan.sourceElsewhere(path) && (len(f.Objects()) > 0 || f.NoObjects() != nil && f.MentionsFlux()) {
			names = append(names, f.Name)
		}
	}
	return names
}

// live reports whether a file or directory takes part in a run although nothing builds it: it is not known what is
// applied, or that is said there.
func (p *plan) live(path string) bool { return !p.known || p.entryFiles[path] }

// sourceElsewhere reports whether a file lies at the path of a Kustomization whose source is elsewhere: it may well be applied.
func (p *plan) sourceElsewhere(path string) bool {
	return slices.ContainsFunc(p.elsewhere, func(dir string) bool { return inside(dir, path) })
}

// Loose is what is judged of files that were passed and that nothing applies, if others that were passed are applied:
// these files, with all that they may refer to. It is nil if there are none.
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

// looseStarts judges the Kustomizations and directories of files that were passed and that nothing applies, as if a cluster began
// with each. What they wait for may be in another one.
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
