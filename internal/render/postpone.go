package render

import (
	"bytes"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// Of an input that is about a few files, only what these take part in is built, and what leads to other builds. The rest is
// postponed until an object of the former refers to it.

// needs are the builds of a cluster that are not postponed. Its rounds share them.
type needs struct {
	all  bool
	of   map[string]bool // by the keys of what was postponed once
	last *builder
}

// postponed is a build that was left out.
type postponed struct {
	key       string
	repo      *repository
	closure   *closure
	patches   []types.Patch // of the spec of a Kustomization
	affixed   bool          // names get a prefix or a suffix
	variables map[string]string
	resources []string // files that hold objects
	texts     []string // of the patches
}

// maxExtensions bounds how often a cluster is built because something refers to a build that was postponed. After that
// nothing is postponed.
const maxExtensions = 4

// Need has those builds made that may give what objects refer to, if they were postponed. It reports whether the
// cluster is to be built again.
func (c *Cluster) Need(wants []manifest.Want) bool {
	if !c.Postponed() {
		return false
	}
	b := c.needs.last
	more := false
	for _, w := range wants {
		found := b.need(func(p *postponed) bool { return b.makes(p, w.Kind, w.Name, !w.Found && w.Group == "") })
		if !found && !w.Found && w.Group != "" {
			c.needs.all = true // the message about it names what is like it
			return true
		}
		more = more || found
	}
	return more
}

// NeedAll has everything built. It reports whether that is another build.
func (c *Cluster) NeedAll() bool {
	again := c.Postponed()
	if again {
		c.needs.all = true
	}
	return again
}

// Postponed reports whether the last build left anything out.
func (c *Cluster) Postponed() bool {
	return c.needs != nil && c.needs.last != nil && len(c.needs.last.postponed) > 0
}

// need marks builds that were postponed as needed. It reports whether there are any.
func (b *builder) need(when func(*postponed) bool) bool {
	more := false
	for _, p := range b.postponed {
		if !b.cluster.needs.of[p.key] && when(p) {
			b.cluster.needs.of[p.key] = true
			more = true
		}
	}
	return more
}

// extend finds out what else is needed for the objects that the input is about: their variables, and whatever may be one of
// them a second time. It reports whether there is any.
func (b *builder) extend() bool {
	if len(b.postponed) == 0 {
		return false
	}
	more := b.need(func(p *postponed) bool { return b.concerns(p.closure) })
	for w := range b.wants {
		more = b.need(func(p *postponed) bool { return b.makes(p, w.kind, w.name, false) }) || more
	}
	own := map[wanted]string{}
	for _, o := range b.objects {
		if !o.ReferenceOnly {
			own[wanted{o.Kind, o.Name}] = o.Namespace
		}
	}
	for path := range b.passed {
		if f := b.byPath[path]; f != nil {
			for _, o := range f.Objects() {
				own[wanted{o.Kind, o.Name}] = o.Namespace
			}
		}
	}
	for key, namespace := range own {
		more = b.need(func(p *postponed) bool { return b.makes(p, key.kind, key.name, false) || b.clashes(p, key, namespace) }) || more
	}
	return more
}

// wanted is what an object is found by among what was postponed, where namespaces are not known yet.
type wanted struct{ kind, name string }

// postpone leaves a build out unless it is needed. The closure is all that it reads.
func (b *builder) postpone(p *postponed, referenceOnly bool) bool {
	n := b.cluster.needs
	if n == nil || n.all || n.of[p.key] || !referenceOnly || len(p.closure.remote) > 0 || b.touches(p.closure) || b.concerns(p.closure) || !b.foreseen(p) {
		return false
	}
	b.postponed = append(b.postponed, p)
	return true
}

// concerns reports whether the input is about objects of a file of a build.
func (b *builder) concerns(c *closure) bool {
	for path := range c.files {
		if b.concerned[path] {
			return true
		}
	}
	return false
}

// later is the build of a Kustomization as it may be postponed.
func (f *flux) later(c *closure, k *types.Kustomization) *postponed {
	p := &postponed{key: f.name(), repo: f.repo, closure: c, affixed: f.spec.NamePrefix+f.spec.NameSuffix != ""}
	for _, patch := range k.Patches {
		if patch.Path == "" {
			p.patches = append(p.patches, patch)
		}
	}
	if f.spec.PostBuild != nil {
		p.variables = f.spec.PostBuild.Substitute
	}
	return p
}

// foreseen reports whether the files of a build show well enough what it gives: nothing that leads to other builds or decides
// about them, and names as they are written.
func (b *builder) foreseen(p *postponed) bool {
	named, other := map[string]bool{}, map[string]bool{}
	patches := slices.Clone(p.patches)
	for _, d := range p.closure.dirs {
		k := d.kustomization
		if len(k.Generators)+len(k.Transformers)+len(k.HelmCharts)+len(k.HelmChartInflationGenerator)+len(k.Replacements) > 0 {
			return false
		}
		p.affixed = p.affixed || k.NamePrefix+k.NameSuffix != ""
		other[d.repo.original(d.file)] = true
		for _, f := range d.files {
			named[f], other[f] = named[f] || d.resources[f], other[f] || !d.resources[f]
		}
		for _, patch := range k.Patches {
			if patch.Path != "" {
				real, err := d.repo.within(join(d.path, patch.Path))
				var text []byte
				if err == nil {
					text, err = d.repo.read(real)
				}
				if err != nil {
					return false
				}
				patch.Patch = string(text)
			}
			patches = append(patches, patch)
		}
	}
	for _, patch := range patches {
		if patch.Options != nil || strings.Contains(patch.Patch, "/metadata/name") || strings.Contains(patch.Patch, "/kind") {
			return false
		}
		p.texts = append(p.texts, patch.Patch)
	}
	for path := range p.closure.files {
		if named[path] || !other[path] {
			p.resources = append(p.resources, path)
		}
	}
	slices.Sort(p.resources)
	return !slices.ContainsFunc(p.resources, func(path string) bool { return b.leads(p.repo, path) })
}

// leads reports whether a file holds what other builds depend on: Kustomizations, their sources, and what installs Flux.
func (b *builder) leads(r *repository, path string) bool {
	text := []byte(nil)
	if f := b.byPath[path]; f != nil && f.Text() != nil {
		text = f.Text()
	} else if data, err := r.read(path); err == nil {
		text = data
	} else {
		return true
	}
	if bytes.Contains(text, []byte(manifest.KustomizeGroup)) || bytes.Contains(text, []byte(manifest.OperatorGroup)) || bytes.Contains(text, []byte(manifest.ExtensionsGroup)) {
		return true
	}
	if !bytes.Contains(text, []byte(manifest.SourceGroup)) {
		return false
	}
	f, err := r.file(path)
	return err != nil || slices.ContainsFunc(f.Objects(), func(o *manifest.Object) bool {
		return o.Group() == manifest.SourceGroup && (b.plan.sources[o.Name] || strings.Contains(o.Name, "$"))
	})
}

// makes reports whether a build may give an object of a kind and name. With near it need only be called alike.
func (b *builder) makes(p *postponed, kind, name string, near bool) bool {
	fits := func(written string) bool { return p.fits(written, name) || near && alike(written, name) }
	for _, path := range p.resources {
		f, err := p.repo.file(path)
		if err != nil {
			return true // which fails the build, and then its files are there as they are
		}
		if slices.ContainsFunc(f.Objects(), func(o *manifest.Object) bool { return o.Kind == kind && fits(o.Name) }) ||
			slices.ContainsFunc(f.Generators(), func(m manifest.Generator) bool { return m.Generates.Kind == kind && fits(m.Generates.Name) }) {
			return true
		}
	}
	for _, d := range p.closure.dirs {
		var names []string
		for _, g := range d.kustomization.ConfigMapGenerator {
			names = append(names, g.Name)
		}
		for _, g := range d.kustomization.SecretGenerator {
			names = append(names, g.Name)
		}
		if slices.ContainsFunc(names, func(written string) bool { return fits(written) || p.fits(written, withoutHash(name)) }) {
			return true
		}
	}
	return slices.ContainsFunc(p.texts, func(text string) bool { return strings.Contains(text, name) })
}

// clashes reports whether a build may give a HelmRelease whose HelmChart is called like that of another one: both
// names are in the chart's.
func (b *builder) clashes(p *postponed, own wanted, namespace string) bool {
	if own.kind != "HelmRelease" {
		return false
	}
	chart := namespace + "-" + own.name
	for _, path := range p.resources {
		f, err := p.repo.file(path)
		if err != nil {
			return true
		}
		if slices.ContainsFunc(f.Objects(), func(o *manifest.Object) bool {
			return o.Kind == own.kind && (p.affixed || strings.Contains(o.Name, "$") || strings.HasSuffix(chart, "-"+o.Name))
		}) {
			return true
		}
	}
	return b.makes(p, "HelmChart", chart, false)
}

// fits reports whether an object that is written with one name may get another: variables, prefixes and suffixes.
func (p *postponed) fits(written, name string) bool {
	pieces := p.pieces(written)
	if len(pieces) == 1 && !p.affixed {
		return pieces[0] == name
	}
	first, last := pieces[0], pieces[len(pieces)-1]
	if !p.affixed && (len(name) < len(first)+len(last) || !strings.HasPrefix(name, first) || !strings.HasSuffix(name, last)) {
		return false
	}
	for _, piece := range pieces {
		_, rest, found := strings.Cut(name, piece)
		if !found {
			return false
		}
		name = rest
	}
	return true
}

// pieces is a name between the variables whose values are not known.
func (p *postponed) pieces(written string) []string {
	pieces := []string{""}
	for {
		before, rest, found := strings.Cut(written, "$")
		pieces[len(pieces)-1] += before
		if !found {
			return pieces
		}
		expression, after, closed := strings.Cut(strings.TrimPrefix(rest, "{"), "}")
		if value, known := p.variables[expression]; closed && known && strings.HasPrefix(rest, "{") {
			pieces[len(pieces)-1] += value
		} else {
			pieces = append(pieces, "")
		}
		if !closed {
			return pieces
		}
		written = after
	}
}

// alike reports whether a message about a name that is nowhere may offer another one.
func alike(written, name string) bool {
	_, near := manifest.Nearest(name, []string{written})
	return near || written != "" && (strings.HasPrefix(written, name) || strings.HasSuffix(written, name))
}

// withoutHash is the name of a generator without the hash that kustomize appends.
func withoutHash(name string) string {
	const hash = 10
	if at := strings.LastIndexByte(name, '-'); at >= 0 && len(name)-at-1 == hash {
		return name[:at]
	}
	return name
}
