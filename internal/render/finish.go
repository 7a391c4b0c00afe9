package render

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/resourceset"
	"github.com/helmsrc/helmsrc/internal/sops"
)

// complete reports whether the ConfigMaps and Secrets of a Kustomization are known. It checks optional ones on demand only.
func (b *builder) complete(f *flux, optional bool) bool {
	if f.spec.PostBuild == nil {
		return true
	}
	for _, ref := range f.spec.PostBuild.SubstituteFrom {
		if ref.Optional && !optional {
			continue
		}
		if b.lookup(ref.Kind, f.object.Namespace, ref.Name) == nil {
			return false
		}
	}
	return true
}

// variablesOf returns the variables for the objects of a Kustomization, nil if it has no post build.
func (b *builder) variablesOf(f *flux) *variables {
	post := f.spec.PostBuild
	if post == nil {
		return nil
	}
	v := newVariables(b.o.Unset, b.budget)
	v.always = post.SubstituteStrategy == kustomizev1.SubstituteStrategy("Always")
	for i, ref := range post.SubstituteFrom {
		d := b.lookup(ref.Kind, f.object.Namespace, ref.Name)
		if d != nil && d.sealed == "" {
			v.set(d.values, func(name string) bool { return d.secret[name] })
			b.o.Secrets.AddData(d.hidden())
			continue
		}
		if d == nil && ref.Optional {
			continue
		}
		missing := b.missing(f, ref, d)
		// In a cluster it may exist. A variable without a value is reported where it is used.
		v.always, v.open, v.tolerant = true, true, b.o.Tolerant
		v.hint = missing.hint
		b.absent = append(b.absent, absence{f, i, d})
	}
	v.set(post.Substitute, f.hides)
	v.set(b.o.Variables, public)
	return v
}

func (f *flux) hides(name string) bool {
	post := f.seen.spec.PostBuild
	return f.seen != f && (post == nil || post.Substitute[name] != f.spec.PostBuild.Substitute[name])
}

// keysOf returns the keys for the objects of a Kustomization: the keys in its Secret, and those of the user.
func (b *builder) keysOf(f *flux) *decrypter {
	d := b.decrypter()
	if b.fromFetched(f) {
		d.keys, d.hint = &sops.Keys{}, finding.KeysNotFollowed
	}
	spec := f.spec.Decryption
	if spec == nil || spec.SecretRef == nil {
		return d
	}
	secret := b.lookup("Secret", f.object.Namespace, spec.SecretRef.Name)
	if secret == nil {
		return d
	}
	data := map[string][]byte{}
	for k, v := range secret.values {
		data[k] = []byte(v)
	}
	keys := &sops.Keys{}
	if err := addSecret(keys, f.object.Namespace+"/"+spec.SecretRef.Name, data); err != nil {
		b.warn(finding.UnusableKeys, f.object, err.Error(), "", "spec", "decryption", "secretRef")
	}
	d.keys = d.keys.With(keys)
	return d
}

// decrypted decrypts an object of a Kustomization, if spec.decryption is set.
func (b *builder) decrypted(f *flux, content map[string]any) (map[string]any, error) {
	if f.spec.Decryption != nil {
		if !sealed(content) {
			return content, nil
		}
		return b.keysOf(f).object(content)
	}
	if sops.Encrypted(content) && content["kind"] == "Secret" {
		return nil, &manifest.SealedError{Reason: f.name() + " has no spec.decryption, without which the cluster refuses it"}
	}
	return content, nil
}

// finish substitutes the variables in the objects of a Kustomization and adds them to the cluster.
func (b *builder) finish(f *flux) {
	if f.isWithdrawn(b) {
		return
	}
	b.from = f.from
	v := b.variablesOf(f)
	var objects []*finishing
	spoiled := false
	for _, o := range f.objects {
		if b.ctx.Err() != nil {
			return
		}
		objects = append(objects, b.substitute(f, o, v))
		spoiled = spoiled || objects[len(objects)-1].spoils(v)
	}
	if spoiled {
		b.spoiled(f, objects, v)
		return
	}
	for _, o := range objects {
		if b.ctx.Err() != nil || f.isWithdrawn(b) {
			return
		}
		b.finishObject(f, o, v)
	}
}

// finishing is an object of a Kustomization, decrypted and substituted, or the error of that.
type finishing struct {
	built
	object      *manifest.Object
	nameless    bool
	opened      map[string]any
	sealed      error
	substituted *substituted
	err         error // of the variables
}

func (b *builder) substitute(f *flux, o built, v *variables) *finishing {
	apiVersion, kind, _, name := manifest.Identify(o.content)
	p := &finishing{built: o, object: b.origin(f.repo, o.file, o.content, o.file, f.name()), nameless: apiVersion == "" || kind == "" || name == ""}
	if p.nameless {
		return p
	}
	if p.opened, p.sealed = b.decrypted(f, o.content); p.sealed == nil {
		p.substituted, p.err = v.object(b.ctx, p.opened)
	}
	return p
}

// spoils reports whether the object makes its whole Kustomization fail in the cluster. A variable without a value does so only
// if strict substitution is requested.
func (p *finishing) spoils(v *variables) bool {
	_, unset := errors.AsType[*unsetError](p.err)
	return p.err != nil && (!unset || v.unset == UnsetFails)
}

// spoiled reports a Kustomization that fails because of variables in some of its objects. The controller does not apply any object.
func (b *builder) spoiled(f *flux, objects []*finishing, v *variables) {
	lost := false
	for _, p := range objects {
		o := p.object
		isKustomization := o.Group() == manifest.KustomizeGroup && o.Kind == "Kustomization"
		lost = lost || !o.ReferenceOnly || isKustomization && b.lose(o)
	}
	if !lost && b.ctx.Err() == nil {
		return
	}
	if err := v.check(); err != nil {
		b.errs = append(b.errs, manifest.Fault(f.object, &spoilingError{err, f.name(), "rename the variable, or the key of the ConfigMap or Secret that it comes from"}, "spec", "postBuild"))
		return
	}
	for _, p := range objects {
		if !p.spoils(v) {
			continue
		}
		confide(p.object, p.opened, withoutSecrets(p.content, p.opened, visibleOf(p.built)))
		spoiling := &spoilingError{err: p.err, name: f.name()}
		if _, unset := errors.AsType[*unsetError](p.err); unset {
			b.errs = append(b.errs, b.faultOf(p.object, spoiling))
		} else {
			b.errs = append(b.errs, manifest.Fault(p.object, spoiling, v.culprit(b.ctx, p.opened)...))
		}
	}
}

func (b *builder) finishObject(f *flux, p *finishing, v *variables) {
	content, obj := p.content, p.object
	apiVersion, kind, _, _ := manifest.Identify(content)
	if p.nameless {
		confide(obj, content, visibleOf(p.built))
		b.fault(obj, errors.New("failed to decode Kubernetes apiVersion, kind and name"))
		return
	}
	if strings.HasPrefix(apiVersion, "kustomize.config.k8s.io/") && (kind == types.KustomizationKind || kind == types.ComponentKind) {
		return
	}
	opened := p.opened
	if p.sealed != nil {
		b.warnSealed(f, obj)
		b.sealedObject(obj, p.sealed)
		return
	}
	shown := withoutSecrets(content, opened, visibleOf(p.built))
	confide(obj, opened, shown)
	if p.err != nil {
		b.unsubstituted(f, obj, opened, p.err)
		return
	}
	s := p.substituted
	content = s.content
	if obj.Open = s.open; len(s.unset) > 0 && !(s.open && v.tolerant) {
		b.noteUnset(obj, s.unset, v.hint, s.open)
	}
	obj.Mute(b.given(s.used), s.content)
	kept, dropped := dropLabels(f, content)
	b.warnDropped(f, obj, content, dropped)
	content = owned(f, kept)
	if obj.Tainted() || v.hides(s.used) || f.seen != f {
		visible, _ := dropLabels(f, v.shown(b.ctx, opened, shown))
		confide(obj, content, owned(f.seen, visible))
	}
	if b.leftOut(obj, content) {
		return
	}
	b.emit(obj, content)
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

// unsubstituted reports an object whose variables are not known: as an error for objects that this program uses, as a warning for
// other objects, because the whole Kustomization would fail.
func (b *builder) unsubstituted(f *flux, obj *manifest.Object, content map[string]any, err error) {
	_, endless := errors.AsType[*endlessError](err)
	if ofFlux(obj) || isGenerator(obj) || endless || b.ctx.Err() != nil {
		b.fault(obj, err)
		return
	}
	hint, pos := "", obj.Pos
	if unset, ok := errors.AsType[*unsetError](err); ok {
		hint, pos = unset.Hint(), obj.Position(pathOf(obj, unset.name)...)
	}
	b.warnAt(finding.UnsetVariable, obj, fmt.Sprintf("of %s: %v", f.name(), err), hint, pos)
	b.emit(obj, content)
}

// owned adds the labels by which the controller recognizes its objects, and the common metadata of the Kustomization. The
// metadata is not substituted.
func owned(f *flux, content map[string]any) map[string]any {
	content = copyMap(content)
	meta, _ := content["metadata"].(map[string]any)
	meta = copyMap(meta)
	content["metadata"] = meta
	labels := map[string]string{
		manifest.KustomizeGroup + "/name":      f.object.Name,
		manifest.KustomizeGroup + "/namespace": f.object.Namespace,
	}
	var annotations map[string]string
	if common := f.spec.CommonMetadata; common != nil {
		maps.Copy(labels, common.Labels)
		annotations = common.Annotations
	}
	for field, values := range map[string]map[string]string{"labels": labels, "annotations": annotations} {
		if len(values) == 0 {
			continue
		}
		m := copyMap(manifest.At[map[string]any](meta, field))
		for k, v := range values {
			m[k] = v
		}
		meta[field] = m
	}
	return content
}

// leftOut reports whether an object never reaches the cluster.
func (b *builder) leftOut(obj *manifest.Object, content map[string]any) bool {
	for _, m := range []struct{ key, value string }{
		{manifest.KustomizeGroup + "/reconcile", disabled},
		{manifest.KustomizeGroup + "/ssa", "ignore"},
	} {
		if marked(content, m.key, m.value) {
			b.notice(Notice{Object: obj, Text: fmt.Sprintf("left out: %s: %s keeps it from the cluster", m.key, m.value)})
			return true
		}
	}
	return false
}

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

// noNamespace returns the error of an object without a namespace. It names the builder of the object, if known.
func noNamespace(built string) error {
	p := &finding.Problem{Text: "namespace not specified", Advice: "set metadata.namespace"}
	if built != "" {
		p.Advice = "set metadata.namespace, namespace in a kustomization.yaml, or spec.targetNamespace of " + built
	}
	return p
}

// dropLabels removes the labels of an object if the value of one is not a string, as kustomize-controller does when it adds its
// own: it cannot read the map, and writes a new one. Annotations are removed likewise, but only if the Kustomization adds some.
// dropLabels also returns the names of the removed fields.
func dropLabels(f *flux, content map[string]any) (map[string]any, []string) {
	meta, _ := content["metadata"].(map[string]any)
	var dropped []string
	for _, field := range []string{"labels", "annotations"} {
		if field == "annotations" && (f.spec.CommonMetadata == nil || len(f.spec.CommonMetadata.Annotations) == 0) {
			continue
		}
		values, _ := meta[field].(map[string]any)
		if notText(values) == "" {
			continue
		}
		dropped = append(dropped, field)
		content, meta = copyMap(content), copyMap(meta)
		delete(meta, field)
		content["metadata"] = meta
	}
	return content, dropped
}

// notText returns the first key whose value is not a string, "" if all are.
func notText(values map[string]any) string {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if _, ok := values[key].(string); !ok {
			return key
		}
	}
	return ""
}

func (b *builder) warnDropped(f *flux, obj *manifest.Object, content map[string]any, fields []string) {
	for _, field := range fields {
		key := notText(manifest.At[map[string]any](content, "metadata", field))
		text := fmt.Sprintf("metadata.%s[%s] is no text: %s drops all %s of the object, and applies it without", field, key, f.name(), field)
		b.warnAt(finding.DroppedLabels, obj, text, "put the value in quotes", obj.Position("metadata", field, key))
	}
}
