package render

import (
	"errors"
	"fmt"
	"strings"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/generate"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/resourceset"
)

func (b *builder) emit(obj *manifest.Object, content map[string]any) {
	obj.Content = content
	obj.APIVersion, obj.Kind, obj.Namespace, obj.Name = manifest.Identify(content)
	obj.Kind = manifest.Called(obj.APIVersion, obj.Kind)
	flux := ofFlux(obj) || isGenerator(obj) || obj.Group() == resourceset.Group
	ref := obj.Group() == "" && (obj.Kind == "Secret" || obj.Kind == "ConfigMap" || obj.Kind == "ServiceAccount")
	if obj.Namespace == "" && (flux || ref) {
		if strings.HasPrefix(obj.Built, "Kustomization ") {
			b.fault(obj, noNamespace(obj.Built))
			return
		}
		if flux && !b.overlay {
			b.warnNamespace(obj, b.o.Namespace)
		}
		obj.Namespace = b.o.Namespace
	}
	if b.takeOperators(obj) {
		return
	}
	withdrawn := b.withdrawn[obj.Built]
	switch {
	case ref && obj.Kind != "ServiceAccount":
		d := &datum{sealed: obj.Sealed, inCluster: true}
		if obj.Sealed == "" {
			d = datumOf(content, obj.Shown(content))
		}
		d.built = obj.Built
		b.found[datumKey(obj.Kind, obj.Namespace, obj.Name)] = d
	case obj.Group() == manifest.KustomizeGroup && obj.Kind == "Kustomization":
		b.enter(obj)
	default:
		b.addGenerated(content)
	}
	if (obj.Group() == manifest.SourceGroup || isGenerator(obj)) && b.sources.add(obj) {
		clear(b.made)
	}
	if b.withdrawn[obj.Built] == withdrawn {
		b.objects = append(b.objects, obj)
	}
}

// enter builds a Kustomization. One with an artifact waits if its generator was not built yet.
func (b *builder) enter(o *manifest.Object) {
	if !b.ready(o) {
		b.parked = append(b.parked, parked{object: o, from: b.from})
		return
	}
	b.kustomization(o)
}

// ready reports whether the source tree of a Kustomization is certain.
func (b *builder) ready(o *manifest.Object) bool {
	ref := sourceRef(o)
	if ref.Kind != externalArtifact {
		return true
	}
	if stand, _, _ := b.standIn(ref); stand != nil {
		return true
	}
	m := b.generatorFor(o, ref.Namespace, ref.Name, b.sources, nil)
	return m != nil && b.sources[datumKey(generate.Kind, ref.Namespace, m.object.Name)] == m.object
}

// takeOperators handles the objects of the Flux operator. It reports whether the object is a ResourceSet, which is expanded
// later.
func (b *builder) takeOperators(o *manifest.Object) bool {
	if o.Group() != resourceset.Group {
		return false
	}
	if b.refusesOperator(o) {
		return o.Kind == resourceset.Kind
	}
	off := resourceset.Disabled(o.Content)
	if off {
		b.notice(Notice{Object: o, Text: "disabled: flux-operator creates nothing from it"})
	}
	switch o.Kind {
	case resourceset.Kind:
		if off {
			return true
		}
		b.judged = append(b.judged, o)
		b.sets = append(b.sets, pendingSet{o, b.from, b.depth})
		return true
	case resourceset.ProviderKind:
		b.addProvider(o)
	case instanceKind:
		b.addInstance(o)
	}
	return false
}

// refusesOperator reports whether the API server refuses an object, and records that. The objects of a refused set are unknown.
func (b *builder) refusesOperator(o *manifest.Object) bool {
	if b.o.Admit == nil {
		return false
	}
	err := b.o.Admit(o)
	if err == nil {
		return false
	}
	b.partial = append(b.partial, o)
	if o.Kind != instanceKind {
		b.silenced = append(b.silenced, "")
	}
	if !o.ReferenceOnly {
		b.rejections = append(b.rejections, Rejection{o, err})
	}
	return true
}

func (b *builder) addProvider(o *manifest.Object) {
	p := resourceset.Provider{Namespace: o.Namespace, Name: o.Name, Labels: map[string]string{}, Disabled: resourceset.Disabled(o.Content)}
	if resourceset.Decode(o.Content, &p.Spec) != nil {
		p.Spec.Type = "" // an invalid type
	}
	for k, v := range manifest.At[map[string]any](o.Content, "metadata", "labels") {
		p.Labels[k], _ = v.(string)
	}
	b.providers = append(b.providers, inputProvider{p, o})
}

// addInstance adds the source that the operator makes from an instance. Its Kustomization is already a start of the cluster.
func (b *builder) addInstance(o *manifest.Object) {
	if err := checkDistribution(o); err != nil {
		if !o.ReferenceOnly {
			b.errs = append(b.errs, err)
		}
		return
	}
	s := syncOf(o, o.Content, o.Namespace, "spec", "sync")
	if s == nil {
		return
	}
	if err := s.finish(b.Renderer); err != nil {
		if !o.ReferenceOnly && b.ctx.Err() == nil {
			b.errs = append(b.errs, err)
		}
		return
	}
	if s.source != nil {
		b.emit(s.source, s.source.Content)
	}
}

// sealedObject keeps a Secret that cannot be decrypted: it counts as missing if an object refers to it. For any other
// object it reports an error.
func (b *builder) sealedObject(obj *manifest.Object, err error) {
	sealed, ok := errors.AsType[*manifest.SealedError](err)
	if !ok {
		group := ""
		if g := obj.Group(); g != "" {
			group = "." + g
		}
		b.fault(obj, fmt.Errorf("decryption failed for '%s%s/%s': %w", obj.Kind, group, obj.Name, err))
		return
	}
	if obj.Kind != "Secret" {
		b.fault(obj, sealed)
		return
	}
	obj.Sealed = sealed.Reason
	b.emit(obj, obj.Content)
}

func (b *builder) fault(o *manifest.Object, err error) {
	lost := o.Group() == manifest.KustomizeGroup && o.Kind == "Kustomization" && b.claimUnbuilt(o)
	if o.ReferenceOnly && !lost {
		return
	}
	b.errs = append(b.errs, b.faultOf(o, err))
}

// faultOf places an error at the variable that it is about, if any.
func (b *builder) faultOf(o *manifest.Object, err error) error {
	var path []any
	if unset, ok := errors.AsType[*unsetError](err); ok {
		if path = unset.path; path == nil {
			path = pathOf(o, unset.name)
		}
	}
	return manifest.Fault(o, err, path...)
}

// noNamespace returns the error of an object without a namespace. It names the builder of the object, if known.
func noNamespace(built string) error {
	p := &finding.Problem{Text: "namespace not specified", Advice: "set metadata.namespace"}
	if built != "" {
		p.Advice = "set metadata.namespace, namespace in a kustomization.yaml, or spec.targetNamespace of " + built
	}
	return p
}
