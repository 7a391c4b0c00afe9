package render

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

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

func (f *flux) isWithdrawn(b *builder) bool { return b.withdrawn[f.name()] != f.since }

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
		lost = lost || !o.ReferenceOnly || isKustomization && b.claimUnbuilt(o)
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
			b.notice(Notice{Object: obj, Text: fmt.Sprintf("left out: %s: %s excludes it from the cluster", m.key, m.value)})
			return true
		}
	}
	return false
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
		text := fmt.Sprintf("metadata.%s[%s] is not a string: %s drops all %s of the object", field, key, f.name(), field)
		b.warnAt(finding.DroppedLabels, obj, text, "put the value in quotes", obj.Position("metadata", field, key))
	}
}
