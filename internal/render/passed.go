package render

import (
	"maps"
	"slices"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// If a hook passes a few files, the run builds everything that they may refer to, but reports only on objects that the
// files take part in.

func (r *Renderer) pass() {
	if r.in.Passed == nil {
		return
	}
	r.passed = map[string]bool{}
	for _, name := range r.in.Passed {
		if real, err := absolute(name); err == nil {
			r.passed[real] = true
		}
	}
}

// concern finds the files whose objects the input is about: the passed files, and, for a passed patch, kustomization or file of
// a generator, all files of the builds that it takes part in.
func (r *Renderer) concern(nodes []*node) {
	if r.passed == nil {
		return
	}
	r.concerned, r.reshaped = maps.Clone(r.passed), map[string]bool{}
	for _, n := range nodes {
		if n.object != nil && r.passed[n.file] {
			r.involve(n.claims, hasPatches(n.object))
		}
		for _, d := range n.claims.dirs {
			if !r.shapes(d) {
				continue
			}
			c := newClosure()
			if _ = c.add(d.repo, d.path, nil); d.kustomization != nil && d.kustomization.Kind == types.ComponentKind {
				c = n.claims // of the kustomization that includes it
			}
			r.involve(c, d.kustomization != nil && len(d.kustomization.Patches) > 0)
		}
	}
	for _, n := range nodes {
		for _, d := range n.claims.dirs {
			d.object.ReferenceOnly = !r.concerned[d.repo.original(d.file)]
		}
	}
}

// concernBuilt is concern for a built Kustomization: some of its files may be known only now.
func (b *builder) concernBuilt(o *manifest.Object, c *closure) {
	if b.passed == nil || o.ReferenceOnly {
		return
	}
	real, err := b.disk.absolute(o.Pos.File)
	if err != nil || !b.passed[real] && !b.reshaped[real] {
		return
	}
	b.involve(c, b.reshaped[real] || hasPatches(o))
	for _, d := range c.dirs {
		d.object.ReferenceOnly = false
	}
}

// involve adds the files of a build, and records whether their objects get patches.
func (r *Renderer) involve(c *closure, patched bool) {
	maps.Copy(r.concerned, c.files)
	if patched {
		maps.Copy(r.reshaped, c.files)
	}
}

// hasPatches reports whether a Kustomization has patches.
func hasPatches(o *manifest.Object) bool {
	return len(manifest.At[[]any](o.Content, "spec", "patches")) > 0
}

func (r *Renderer) shapes(d *directory) bool {
	return r.passed[d.repo.original(d.file)] || slices.ContainsFunc(d.files, func(f string) bool { return r.passed[f] && !d.resources[f] })
}

// keepWritten keeps the files of a failed build as they are written, if the input is not about them.
func (b *builder) keepWritten(c *closure) {
	for path := range c.files {
		if b.passed != nil && !b.concerned[path] {
			b.readAsWritten[path] = true
		}
	}
}

// touches reports whether the input is about any file of a build.
func (r *Renderer) touches(c *closure) bool {
	if r.passed == nil {
		return true
	}
	for path := range c.files {
		if r.passed[path] {
			return true
		}
	}
	return false
}

func (r *Renderer) idle(nodes []*node) bool {
	if r.passed == nil || slices.ContainsFunc(nodes, func(n *node) bool { return r.touches(n.claims) || r.passed[n.file] }) {
		return false
	}
	return !slices.ContainsFunc(r.in.Files, func(f *manifest.File) bool {
		return !f.ReferenceOnly() && f.MentionsFlux()
	})
}

// hidden reports whether no build applies a file, so that objects cannot refer to it. Passed files that no build applies are
// checked alone, with all files that they may refer to.
func (b *builder) hidden(path string) bool {
	if b.plan == nil || b.plan.live(path) || b.claimed[path] || b.readAsWritten[path] {
		return false
	}
	return !b.loose()
}

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

// Unreached lists the files with objects that no build applies, in the order of the input, once all clusters were built. If files
// were passed, it lists only those. The list is empty if the input does not show which files are applied.
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
