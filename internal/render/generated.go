package render

import (
	"errors"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// reportGenerators reports the errors of the cluster's generators that depend on files. Errors of a spec alone are reported
// when objects are checked.
func (b *builder) reportGenerators() {
	for _, g := range b.artifactGenerators() {
		m := b.outputOf(g, b.sources, nil)
		for _, s := range m.used {
			b.used[s] = true
		}
		if g.ReferenceOnly {
			continue
		}
		for _, d := range m.doubts {
			b.warn(finding.CopyPattern, g, d.Text, "", d.Path...)
		}
		b.expanded(m)
		b.reportUnmade(m)
	}
}

// expandGenerators lists the artifacts of generators in an input without a build. The errors of these generators are reported
// when they are reconciled.
func (b *builder) expandGenerators() {
	for _, f := range b.in.Files {
		for _, o := range f.Objects() {
			if spec := b.specOf(o); spec != nil && spec.PathPattern != "" && !f.ReferenceOnly() {
				b.expanded(b.outputOf(o, b.sources, nil))
			}
		}
	}
}

func (b *builder) expanded(m *output) {
	if m.spec == nil || m.spec.PathPattern == "" {
		return
	}
	for _, a := range m.artifacts {
		b.expansions = append(b.expansions, Expansion{m.object, a.Index, a.Spec.Name, a.Labels})
	}
}

// reportUnmade reports why a generator makes no artifacts, unless the error is reported elsewhere.
func (b *builder) reportUnmade(m *output) {
	_, elsewhere := errors.AsType[*elsewhereError](m.err)
	_, unmade := errors.AsType[*unmadeError](m.err)
	switch _, placed := errors.AsType[*manifest.ObjectError](m.err); {
	case m.err == nil, elsewhere, unmade, b.ctx.Err() != nil:
	case placed:
		b.errs = append(b.errs, m.err)
	default:
		b.errs = append(b.errs, manifest.Fault(m.object, finding.WithCode(finding.RefusedGenerator, m.err), "spec"))
	}
}

// artifactGenerators returns the generators of the cluster: the built ones, and those in files that are used as they are.
func (b *builder) artifactGenerators() []*manifest.Object {
	var list []*manifest.Object
	for _, o := range b.objects {
		if isGenerator(o) {
			list = append(list, o)
		}
	}
	for _, p := range b.index.artifactGenerators {
		if !b.claimed[p.path] && !b.cluster.foreign(p.path) && b.plan.live(p.path) {
			list = append(list, p.object)
		}
	}
	return list
}
