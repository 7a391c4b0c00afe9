package render

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/generate"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/resourceset"
)

// maxNested is the limit of ResourceSets that make each other.
const maxNested = 4

// expandNext makes the objects of the next set. It reports whether there was a set.
func (b *builder) expandNext() bool {
	if len(b.sets) == 0 {
		return false
	}
	next := b.sets[0]
	b.sets = slices.Delete(b.sets, 0, 1)
	b.from, b.depth = next.from, next.depth+1
	b.expand(next)
	b.depth = 0
	return true
}

// maxMade is the limit of objects that the ResourceSets of a cluster may make.
const maxMade = 50_000

func (b *builder) expand(p pendingSet) {
	o := p.object
	set := resourceset.Set{Namespace: o.Namespace, Name: o.Name, Budget: &b.setBudget}
	for _, p := range b.providers {
		set.Providers = append(set.Providers, p.Provider)
	}
	err := resourceset.Decode(o.Content, &set.Spec)
	if err == nil && p.depth >= maxNested {
		err = fmt.Errorf("more than %d ResourceSets create each other", maxNested)
	}
	var made []resourceset.Object
	if err == nil {
		made, err = resourceset.Expand(b.ctx, set)
	}
	if b.objectCount += len(made); b.objectCount > maxMade && err == nil {
		err = fmt.Errorf("more than %d objects of ResourceSets", maxMade)
	}
	for _, m := range made {
		if err == nil {
			err = placeless(m)
		}
	}
	if err != nil {
		b.unexpanded(o, set.Spec, err)
		return
	}
	b.reportIDs(o, set)
	for _, m := range made {
		b.makeObject(o, m)
	}
}

// placeless returns an error for a namespaced object without a namespace.
func placeless(m resourceset.Object) error {
	apiVersion, kind, namespace, name := manifest.Identify(m.Content)
	namespaced, _ := openapi.IsNamespaceScoped(kyaml.TypeMeta{APIVersion: apiVersion, Kind: kind})
	group, _, _ := strings.Cut(apiVersion, "/")
	if namespace != "" || !namespaced && !isFluxGroup(group) && group != generate.Group && group != resourceset.Group {
		return nil
	}
	return &resourceset.Error{Path: m.Path, Err: fmt.Errorf("reconciliation failed: %s/%s %w", kind, name, noNamespace(""))}
}

func (b *builder) unexpanded(o *manifest.Object, spec resourceset.Spec, err error) {
	if server, ok := errors.AsType[*resourceset.ServerError](err); ok {
		b.partial = append(b.partial, o)
		b.silenced = append(b.silenced, o.Namespace)
		b.silenced = append(b.silenced, namespacesOf(spec)...)
		b.warn(finding.UnexpandedResourceSet, o, fmt.Sprintf("not expanded: %s; its objects are missing from the run", server), "", "spec", "inputsFrom")
		return
	}
	b.partial = append(b.partial, o)
	if o.ReferenceOnly || b.ctx.Err() != nil {
		return
	}
	path, hint := []any{"spec"}, ""
	if wrong, ok := errors.AsType[*resourceset.Error](err); ok {
		path = wrong.Path
		if wrong.Unknown != nil {
			if near, ok := finding.Nearest(wrong.Unknown.Name, wrong.Unknown.Known); ok {
				hint = "did you mean " + near + "?"
			}
		}
	}
	b.silenced = append(b.silenced, o.Namespace)
	b.silenced = append(b.silenced, namespacesOf(spec)...)
	b.errs = append(b.errs, manifest.Fault(o, &finding.Problem{Code: finding.RefusedResourceSet, Advice: hint, Err: err}, path...))
}

// namespacesOf returns the namespaces of a set's objects as they are written; "" for a namespace that depends on inputs.
func namespacesOf(spec resourceset.Spec) []string {
	resources := slices.Clone(spec.Resources)
	for _, s := range spec.Steps {
		resources = append(resources, s.Resources...)
	}
	var list []string
	for _, r := range resources {
		namespace := manifest.At[string](r, "metadata", "namespace")
		if strings.Contains(namespace, "<<") {
			namespace = ""
		}
		list = append(list, namespace)
	}
	if spec.ResourcesTemplate != "" || slices.ContainsFunc(spec.Steps, func(s resourceset.Step) bool { return s.ResourcesTemplate != "" }) {
		list = append(list, "")
	}
	return list
}

// reportIDs notes that generated ids replace the ids of static providers, if the set uses them.
func (b *builder) reportIDs(o *manifest.Object, set resourceset.Set) {
	if len(set.Spec.InputsFrom) == 0 {
		return
	}
	if text := fmt.Sprint(set.Spec.Resources, set.Spec.ResourcesTemplate, set.Spec.Steps); strings.Contains(text, "inputs.id") {
		b.notice(Notice{Object: o, Text: "in a cluster, inputs.id of a static provider is derived from its UID: here, it is derived from its name"})
	}
}

func (b *builder) makeObject(o *manifest.Object, m resourceset.Object) {
	apiVersion, kind, namespace, name := manifest.Identify(m.Content)
	obj := o.Derive(manifest.Object{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name, Content: m.Content}, func(path []any) []any {
		return append(slices.Clone(m.Path), path...)
	})
	if m.Copied && !b.copied(obj, m.From) {
		b.copies = append(b.copies, manifest.Generator{Object: o, Generates: manifest.Generated{Kind: kind, Namespace: namespace, Name: name}})
		return
	}
	if apiVersion == "" || kind == "" || name == "" {
		if !o.ReferenceOnly {
			b.errs = append(b.errs, manifest.Fault(o, errors.New("failed to decode Kubernetes apiVersion, kind and name"), m.Path...))
		}
		return
	}
	b.emit(obj, obj.Content)
}

// copied sets the data of an object of a set that is a copy of another object. It reports whether that is in the input; otherwise
// the object exists in the cluster only.
func (b *builder) copied(obj *manifest.Object, from string) bool {
	namespace, name, _ := strings.Cut(from, "/")
	original := b.lookup(obj.Kind, namespace, name)
	if original == nil || obj.Kind != "Secret" && (obj.Kind != "ConfigMap" || original.sealed != "") {
		b.generated[datumKey(obj.Kind, obj.Namespace, obj.Name)] = resourceset.Kind
		return false
	}
	obj.Sealed = original.sealed
	shown := obj.Content
	data, visible := map[string]any{}, map[string]any{}
	for k, v := range original.values {
		text := v
		if obj.Kind == "Secret" {
			text = base64.StdEncoding.EncodeToString([]byte(v))
		}
		if data[k] = text; !original.secret[k] {
			visible[k] = text
		}
	}
	obj.Content = maps.Clone(shown)
	obj.Content["data"] = data
	if original.kind != "" {
		obj.Content["type"] = original.kind
	}
	if obj.Kind == "ConfigMap" && len(visible) < len(data) {
		shown = maps.Clone(shown)
		shown["data"] = visible
		confide(obj, obj.Content, shown)
	}
	return true
}

// plainSets adds the sets and providers in files that are not built.
func (b *builder) plainSets() {
	for _, path := range b.paths {
		if b.taken(path) {
			continue
		}
		for _, o := range slices.Concat(b.byPath[path].Operators(), b.byPath[path].Instances()) {
			raw, err := o.Raw()
			if err != nil {
				continue // reported where it is read
			}
			obj := o.Derive(manifest.Object{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Content: raw.Value}, func(path []any) []any { return path })
			obj.ReferenceOnly = b.passed != nil && !b.concerned[path]
			b.takeOperators(obj)
		}
	}
}
