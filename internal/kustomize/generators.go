package kustomize

import (
	"fmt"
	"path/filepath"

	"sigs.k8s.io/kustomize/api/builtins" //nolint:staticcheck // kustomize has no other door to its transformers
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

func (t *target) generate(a *accumulator) error {
	var list []plugin
	add := func(kind string, p resmap.GeneratorPlugin, args any) error {
		if err := t.configure(kind, p, args); err != nil {
			return err
		}
		list = append(list, plugin{Configurable: p, file: filepath.Join(t.at, t.file), origin: t.configured(kind)})
		return nil
	}
	for _, args := range t.k.ConfigMapGenerator {
		args.Options = types.MergeGlobalOptionsIntoLocal(args.Options, t.k.GeneratorOptions)
		if err := add("ConfigMapGenerator", builtins.NewConfigMapGeneratorPlugin(), args); err != nil {
			return err
		}
	}
	for _, args := range t.k.SecretGenerator {
		args.Options = types.MergeGlobalOptionsIntoLocal(args.Options, t.k.GeneratorOptions)
		if err := add("SecretGenerator", builtins.NewSecretGeneratorPlugin(), args); err != nil {
			return err
		}
	}
	if len(t.k.HelmCharts) > 0 {
		return ErrNoHelm
	}
	plugins, err := t.plugins("generators", t.k.Generators)
	if err != nil {
		return fmt.Errorf("loading generator plugins: %w", err)
	}
	for _, p := range append(list, plugins...) {
		g, ok := p.Configurable.(resmap.Generator)
		if !ok {
			return fmt.Errorf("failed to load generator: plugin %s not a generator", p.id)
		}
		made, err := g.Generate()
		if err != nil {
			return t.placed(err, "generators", p.index)
		}
		if made == nil {
			continue
		}
		if err := made.AddOriginAnnotation(p.origin); err != nil {
			return err
		}
		for _, r := range made.Resources() {
			t.files[r] = p.file
			if err := a.absorb(r); err != nil {
				return fmt.Errorf("merging from generator: %w", err)
			}
		}
		if err := a.recount(); err != nil {
			return err
		}
	}
	return nil
}

// absorb adds a generated object. According to its behavior, it replaces the object of that name or is merged with it.
func (a *accumulator) absorb(r *resource.Resource) error {
	id, behavior := r.CurId(), r.Behavior()
	changes := behavior == types.BehaviorMerge || behavior == types.BehaviorReplace
	found := a.find(id)
	switch {
	case len(found) == 0 && changes:
		return fmt.Errorf("id %#v does not exist; cannot merge or replace", id)
	case len(found) == 0:
		return a.Append(r)
	case len(found) > 1:
		return fmt.Errorf("found multiple objects %v that could accept merge of %v", found, id)
	case !changes:
		return fmt.Errorf("id %#v exists; can not use behavior: '%s', behavior must be merge or replace", id, behavior)
	}
	old := found[0]
	origin, err := old.GetOrigin()
	if err != nil {
		return err
	}
	if err := r.CopyMergeMetaDataFieldsFrom(old); err != nil {
		return err
	}
	if behavior == types.BehaviorMerge {
		r.MergeDataMapFrom(old)
		r.MergeBinaryDataMapFrom(old)
		a.files[r] = a.files[old]
		if origin != nil {
			if err := r.SetOrigin(origin); err != nil {
				return err
			}
		}
	}
	if !r.CurId().Equals(old.CurId()) {
		return fmt.Errorf("cannot find resource with id %s to replace", r.CurId())
	}
	for i := range a.list {
		if a.list[i] == old {
			a.list[i] = r
		}
	}
	a.sum -= a.weights[old].memory
	delete(a.weights, old)
	delete(a.touched, old)
	a.touch(r)
	a.forget()
	return nil
}

// configured returns the origin of objects that a field of the kustomization makes or changes, nil if origins are not written.
func (t *target) configured(kind string) *resource.Origin {
	if t.origin == nil {
		return nil
	}
	return &resource.Origin{
		Repo: t.origin.Repo, Ref: t.origin.Ref, ConfiguredIn: filepath.Join(t.origin.Path, t.file),
		ConfiguredBy: yaml.ResourceIdentifier{TypeMeta: yaml.TypeMeta{APIVersion: "builtin", Kind: kind}},
	}
}
