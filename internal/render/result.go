package render

import (
	"runtime/debug"
	"slices"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// Result is what became of a cluster.
type Result struct {
	*manifest.Build
	Notices    []Notice
	Rejections []Rejection        // Kustomizations that the API server would not store
	Judged     []*manifest.Object // Kustomizations and kustomization files whose comments count
	Incomplete bool               // a part of it is elsewhere, so that nobody can say what is not in it

	used map[Source]bool
}

// Used reports whether a source stood in for that of a Kustomization.
func (r *Result) Used(s Source) bool { return r.used[s] }

// Build builds what is in the directories of the input and belongs to the cluster.
func (c *Cluster) Build() (result *Result) {
	b := c.builder()
	// A bug, here or in a library, must not cost the plain files theirs.
	defer func() {
		if p := recover(); p != nil {
			b.notice(Notice{Text: string(debug.Stack()), Debug: true})
			b.errs = append(b.errs, &buildError{err: &panicError{value: p}})
			result = b.result(&manifest.Build{Errors: b.errs})
		}
	}()
	if c.r.in.Kustomized() {
		b.run()
	}
	return b.result(b.build(c))
}

func (c *Cluster) builder() *builder {
	return &builder{Renderer: c.r, cluster: c, sources: sources{}, abandoned: map[*node]bool{}, unset: map[string]*unsetNote{}, claimed: map[string]bool{}, spared: map[string]bool{}, used: map[Source]bool{},
		kustomizations: map[string]*manifest.Object{}, found: map[string]*datum{}, promises: map[string]string{}}
}

// run builds everything that the cluster begins with.
func (b *builder) run() {
	c := b.cluster
	if c.r.plan == nil || c.r.plan.idle {
		return
	}
	for _, i := range c.starts {
		b.start(c.r.plan.nodes[i])
	}
	b.settle()
	b.rest()
	b.tellAbsent()
	b.tellDependencies()
}

// taken reports whether a file is part of what was built, or of another cluster.
func (b *builder) taken(path string) bool { return b.claimed[path] || b.cluster.foreign(path) }

// build is what became of the files.
func (b *builder) build(c *Cluster) *manifest.Build {
	claimed, foreign := map[*manifest.File]bool{}, map[*manifest.File]bool{}
	for path, f := range b.byPath {
		foreign[f] = c.foreign(path)
		claimed[f] = b.claimed[path] && !b.spared[path] || foreign[f]
	}
	if b.in.Kustomized() {
		b.tellNamespaces(claimed)
	}
	for _, f := range b.in.Files {
		if claimed[f] {
			continue
		}
		b.openFile(f)
		for _, o := range f.Objects() {
			if names := b.emptied[o]; len(names) > 0 && !f.Aside() {
				b.empty(o, names, "")
			}
		}
	}
	for _, f := range b.in.Beside() {
		b.openFile(f)
	}
	return &manifest.Build{Claimed: claimed, Foreign: foreign, Objects: b.objects, Errors: b.errs, Opened: b.opened}
}

func (b *builder) result(build *manifest.Build) *Result {
	b.tellUnset()
	judged := slices.DeleteFunc(b.judged, func(o *manifest.Object) bool { return o.Aside })
	notices := slices.Concat(b.notices, b.keyNotices)
	return &Result{Build: build, Notices: notices, Rejections: b.rejections, Judged: judged, Incomplete: b.partial, used: b.used}
}
