package render

import (
	"errors"
	"slices"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/generate"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// deferred is a Kustomization that waits until the generator of its artifact was built, and the start that led to it.
type deferred struct {
	object *manifest.Object
	from   int
}

// enter builds a Kustomization. One from an artifact waits, if no generator that was built makes it: it may come.
func (b *builder) enter(o *manifest.Object) {
	if !b.ready(o) {
		b.deferred = append(b.deferred, deferred{o, b.from})
		return
	}
	b.kustomization(o)
}

// ready reports whether what a Kustomization is built from is known for certain.
func (b *builder) ready(o *manifest.Object) bool {
	if textAt(o.Content, "spec", "sourceRef", "kind") != externalArtifact {
		return true
	}
	namespace, name := textAt(o.Content, "spec", "sourceRef", "namespace"), textAt(o.Content, "spec", "sourceRef", "name")
	if namespace == "" {
		namespace = o.Namespace
	}
	if stand, _, _ := b.standIn(externalArtifact, namespace, name); stand != nil {
		return true
	}
	m := b.generatorFor(o, namespace, name, b.sources, nil)
	return m != nil && b.sources[datumKey(generate.Kind, namespace, m.object.Name)] == m.object
}

// finishAll finishes what waits for variables, then what waits for generators, until nothing waits.
func (b *builder) finishAll() {
	for {
		b.finishWaiting()
		if b.ctx.Err() == nil && b.expandNext() {
			continue
		}
		if len(b.deferred) == 0 || b.ctx.Err() != nil {
			return
		}
		next := max(0, slices.IndexFunc(b.deferred, func(d deferred) bool { return b.ready(d.object) }))
		d := b.deferred[next]
		b.deferred = slices.Delete(b.deferred, next, next+1)
		b.from = d.from
		b.kustomization(d.object)
	}
}

// topicCode is the code of what a generator does in silence.
func topicCode(t generate.Topic) finding.Code {
	switch t {
	case generate.Nothing:
		return finding.NothingCopied
	case generate.Strategy:
		return finding.MergedDirectory
	}
	return finding.DroppedFiles
}

// reportGenerators reports what the files show of the generators of the cluster. What is wrong with a spec alone is found
// where objects are judged.
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
			b.warn(topicCode(d.Topic), g, d.Text, "", d.Path...)
		}
		if m.spec != nil && m.spec.PathPattern != "" {
			for _, a := range m.artifacts {
				b.expansions = append(b.expansions, Expansion{g, a.Index, a.Spec.Name, a.Labels})
			}
		}
		for _, s := range m.lacks {
			b.lack(s, true)
		}
		b.reportUnmade(m)
	}
}

// reportUnmade reports why a generator makes nothing, if nothing else does.
func (b *builder) reportUnmade(m *output) {
	_, elsewhere := errors.AsType[*elsewhereError](m.err)
	_, unmade := errors.AsType[*unmadeError](m.err)
	switch _, placed := errors.AsType[*manifest.ObjectError](m.err); {
	case m.err == nil, elsewhere, unmade, b.ctx.Err() != nil:
	case placed:
		b.errs = append(b.errs, m.err)
	default:
		b.errs = append(b.errs, manifest.Fault(m.object, &generatorError{finding.RefusedGenerator, m.err}, "spec"))
	}
}

// artifactGenerators are those of the cluster: that were built, and those of the files that take part as they are.
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
