package render

import (
	"maps"
	"path/filepath"
	"slices"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// Of an input that is about a few files, which a hook passed, everything is built that they may refer to; but it is about
// the objects alone that they take part in.

// pass makes out the files that were passed.
func (b *builder) pass() {
	if b.in.Passed == nil {
		return
	}
	b.passed, b.spared = map[string]bool{}, map[string]bool{}
	for _, name := range b.in.Passed {
		if real, err := absolute(name); err == nil {
			b.passed[real] = true
		}
	}
}

// concern makes out the files whose objects the input is about: those that were passed, and where one of these is no
// manifest by itself but a patch, a kustomization or what a generator reads, all that it has a say in.
func (b *builder) concern(nodes []*node) {
	if b.passed == nil {
		return
	}
	b.concerned = maps.Clone(b.passed)
	for _, n := range nodes {
		if n.object != nil && b.passed[n.file] {
			maps.Copy(b.concerned, n.claims.files)
		}
		for _, d := range n.claims.dirs {
			if !b.shapes(d) {
				continue
			}
			c := newClosure()
			if _ = c.add(b.repository(d.path), d.path, nil); d.kustomization != nil && d.kustomization.Kind == types.ComponentKind {
				c = n.claims // of whoever includes it
			}
			maps.Copy(b.concerned, c.files)
		}
	}
	for _, n := range nodes {
		for _, d := range n.claims.dirs {
			d.object.Aside = !b.concerned[d.file]
		}
	}
}

// shapes tells whether a file that was passed says what becomes of the objects of a directory.
func (b *builder) shapes(d *directory) bool {
	return b.passed[d.file] || slices.ContainsFunc(d.files, func(f string) bool { return b.passed[f] && !d.resources[f] })
}

// spare leaves the files of a build that failed as they are, if the input is not about them.
func (b *builder) spare(c *closure) {
	for path := range c.files {
		if b.passed != nil && !b.concerned[path] {
			b.spared[path] = true
		}
	}
}

// touches tells whether the input is about anything of a build.
func (b *builder) touches(c *closure) bool {
	if b.passed == nil {
		return true
	}
	for path := range c.files {
		if b.passed[path] {
			return true
		}
	}
	return false
}

// idle tells that the files that were passed have nothing to do with Flux.
func (b *builder) idle(nodes []*node) bool {
	if b.passed == nil || slices.ContainsFunc(nodes, func(n *node) bool { return b.touches(n.claims) || b.passed[n.file] }) {
		return false
	}
	return !slices.ContainsFunc(b.in.Files, func(f *manifest.File) bool {
		return !f.Aside() && f.Mentions("toolkit.fluxcd.io")
	})
}

// ofPassed are the clusters that files which were passed are part of: by their own Kustomizations, or else by what may
// be in any cluster. If there are none, the files may be in any cluster themselves.
func (b *builder) ofPassed(nodes []*node, edges [][]int, clusters []*cluster) []*cluster {
	if b.passed == nil {
		return clusters
	}
	var found []*cluster
	for _, c := range clusters {
		if slices.ContainsFunc(c.own, func(i int) bool {
			return slices.ContainsFunc(reach(edges, i), func(j int) bool { return b.touches(nodes[j].claims) || b.passed[nodes[j].file] })
		}) {
			found = append(found, c)
		}
	}
	if len(found) > 0 {
		return found
	}
	if dir, err := absolute(filepath.Dir(b.in.Passed[0])); err == nil && b.o.Cluster == 0 {
		return nearest(clusters, dir, nil)[:1]
	}
	return clusters
}
