package render

import (
	"path/filepath"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// start is what a cluster begins with: a node, or the Kustomization that a build made of it.
type start struct {
	node   int
	object *manifest.Object
}

// maxRounds bounds how often a cluster is built because a build led to what it began with.
const maxRounds = 4

// supersede finds out which starts a Kustomization builds: they are none. What only shows once it is built, because a parent
// patches it, is not in the plan.
func (b *builder) supersede(f *flux, c *closure) {
	for path := range c.files {
		i, ok := b.cluster.startAt[path]
		if !ok {
			continue
		}
		n := b.plan.nodes[i]
		switch _, known := b.superseded[i]; {
		case known:
		case f.from != i:
			if _, too := b.superseded[f.from]; !too {
				b.superseded[i] = nil
			}
		case n.object == nil:
			// The directory holds the Kustomization that builds it: only that was ever applied by hand.
			b.superseded[i] = f.object
		}
	}
}

// revises reports whether a Kustomization is one that a start leads to itself: what the cluster has in the end is what
// became of it, with patches and variables.
func (b *builder) revises(first, o *manifest.Object) bool {
	i, ok := b.cluster.startOf[first]
	if !ok || first.Pos != o.Pos || b.from != i || sameSpec(first, o) {
		return false
	}
	b.superseded[i] = o
	return true
}

// revised are the starts without those that a build led to, and whether any is another one.
func (c *Cluster) revised(superseded map[int]*manifest.Object) (*Cluster, bool) {
	if len(superseded) == 0 {
		return c, false
	}
	next := *c
	next.starts = nil
	for _, s := range c.starts {
		object, changed := superseded[s.node]
		switch {
		case !changed:
			next.starts = append(next.starts, s)
		case object != nil:
			next.starts = append(next.starts, start{s.node, object})
		}
	}
	next.prepare()
	return &next, true
}

// prepare makes the starts known by what they are.
func (c *Cluster) prepare() {
	c.startAt, c.startOf = map[string]int{}, map[*manifest.Object]int{}
	for _, s := range c.starts {
		n := c.r.plan.nodes[s.node]
		switch {
		case s.object != nil:
			c.startOf[s.object] = s.node
		case n.object != nil:
			c.startOf[n.object] = s.node
			c.startAt[n.file] = s.node
		default:
			c.startAt[n.file] = s.node
		}
	}
}

// ownPath is the path of a Kustomization. One that applies itself substitutes its own variables in it.
func (r *Renderer) ownPath(o *manifest.Object, spec *kustomizev1.KustomizationSpec) string {
	if spec.PostBuild == nil || !strings.Contains(spec.Path, "${") || strings.HasPrefix(o.Built, "Kustomization ") {
		return spec.Path
	}
	v := newVariables(UnsetFails, r.guard)
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

// lose takes down what is lost with a Kustomization that cannot be built, as far as its path shows it. It reports whether
// the input is about any of it.
func (b *builder) lose(o *manifest.Object) bool {
	spec, _ := o.Content["spec"].(map[string]any)
	path, _ := spec["path"].(string)
	root := b.homeOf(o)
	real, err := b.disk.within(root, join(root, slashed(path)))
	if err != nil || path == "" || !isDirectory(real) || !b.plan.known {
		real = ""
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
