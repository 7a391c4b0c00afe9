package kustomize

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"sigs.k8s.io/kustomize/api/builtins" //nolint:staticcheck // kustomize has no other door to its transformers
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
)

// accumulator collects the objects of a kustomization, with the configuration and vars for the final steps.
type accumulator struct {
	*objects
	*Build
	config *config
	vars   types.VarSet
}

func (b *Build) newAccumulator() *accumulator {
	return &accumulator{objects: newObjects(b.What, b.Budget), Build: b, config: &config{}, vars: types.NewVarSet()}
}

type target struct {
	*Build
	k      *types.Kustomization
	file   string // the name of its file
	loader *loader
	at     string           // the directory, by the names that lead to it
	origin *resource.Origin // that is written into objects, or nil
}

// accumulate adds the objects of a kustomization. The accumulator is empty, or that of the kustomization that includes a component.
func (t *target) accumulate(a *accumulator) error {
	for i, name := range t.k.Resources {
		if err := t.resource(a, name); err != nil {
			return fmt.Errorf("accumulating resources: %w", t.entry(err, "resources", i, name))
		}
	}
	c, err := configOf(t.loader, t.k)
	if err != nil {
		return err
	}
	if err := a.mergeConfig(c); err != nil {
		return err
	}
	if err := t.generate(a); err != nil {
		return err
	}
	for i, name := range t.k.Components {
		if err := t.directory(a, name, true); err != nil {
			return fmt.Errorf("accumulating components: %w", t.entry(err, "components", i, name))
		}
	}
	if err := t.transform(a); err != nil {
		return err
	}
	if err := t.validate(a); err != nil {
		return err
	}
	if err := a.mergeVars(t.k.Vars); err != nil { //nolint:staticcheck // people still write them
		return fmt.Errorf("merging vars: %w", err)
	}
	return nil
}

func (a *accumulator) mergeConfig(c *config) error {
	if len(a.config.NamePrefix) == 0 && a.config.NameReference == nil {
		a.config = c // still empty
		return nil
	}
	merged, err := a.config.merged(c)
	if err == nil {
		a.config = merged
	}
	return err
}

func (t *target) resource(a *accumulator, name string) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	if _, err := t.Source.Directory(t.loader.path(name)); err == nil {
		return t.directory(a, name, false)
	}
	return t.resourceFile(a, name)
}

func (t *target) resourceFile(a *accumulator, name string) error {
	text, err := t.loader.Load(name)
	if err != nil {
		return fmt.Errorf("accumulating resources from '%s': %w", name, err)
	}
	list, err := t.Objects(text)
	if err != nil {
		return fmt.Errorf("accumulating resources from '%s': %w in File: %s", name, err, name)
	}
	for _, r := range list {
		t.files[r] = filepath.Join(t.at, filepath.FromSlash(name))
		if t.origin != nil {
			if err := r.SetOrigin(t.origin.Append(name)); err != nil {
				return err
			}
		}
	}
	if err := a.appendAll(list); err != nil {
		return fmt.Errorf("merging resources from '%s': %w", name, err)
	}
	return nil
}

// directory adds the objects of an included kustomization. A component works on the objects of the accumulator.
func (t *target) directory(a *accumulator, name string, component bool) error {
	l, err := t.loader.directory(name)
	if err != nil {
		return err
	}
	k, file, err := t.Source.Kustomization(l.root)
	if err != nil {
		return fmt.Errorf("couldn't make target for path '%s': %w", l.root, err)
	}
	own := *k
	own.BuildMetadata = t.k.BuildMetadata
	sub := &target{Build: t.Build, k: &own, file: filepath.Base(file), loader: l, at: filepath.Join(t.at, filepath.FromSlash(name))}
	if t.origin != nil {
		sub.origin = t.origin.Append(name)
	}
	if err := sub.check(); err != nil {
		return err
	}
	if err := sub.setSchema(false); err != nil {
		return err
	}
	into := a
	switch {
	case component && k.Kind != types.ComponentKind:
		return fmt.Errorf("expected kind '%s' for path '%s' but got '%s'", types.ComponentKind, l.root, k.Kind)
	case !component && k.Kind == types.ComponentKind:
		return fmt.Errorf("%s is a %s: it belongs under components", l.root, types.ComponentKind)
	case !component:
		into = t.newAccumulator()
	}
	if err := sub.accumulate(into); err != nil {
		return fmt.Errorf("recursed accumulation of path '%s': %w", l.root, sub.entry(err, "", 0, ""))
	}
	if component {
		return nil
	}
	if err := a.merge(into); err != nil {
		return fmt.Errorf("recursed merging from path '%s': %w", l.root, err)
	}
	return nil
}

func (a *accumulator) merge(other *accumulator) error {
	for _, r := range other.list {
		if err := a.Append(r); err != nil {
			return err
		}
		w := other.weights[r]
		a.weights[r] = w
		a.sum += w.memory
		delete(a.touched, r)
	}
	if err := a.budget.Work(a.what, int64(len(other.list))*scanWork); err != nil {
		return err
	}
	if err := a.budget.Fits(a.what, a.sum); err != nil {
		return err
	}
	if err := a.mergeConfig(other.config); err != nil {
		return err
	}
	return a.vars.MergeSet(other.vars)
}

type transformer struct {
	resmap.Transformer
	origin *resource.Origin
	patch  *types.Patch // that it applies, nil for other transformers
	index  int          // of the patch
}

func (t *target) transform(a *accumulator) error {
	list, err := t.transformers(a.config)
	if err != nil {
		return err
	}
	plugins, err := t.plugins("transformers", t.k.Transformers)
	if err != nil {
		return err
	}
	for _, p := range plugins {
		one, ok := p.Configurable.(resmap.Transformer)
		if !ok {
			return fmt.Errorf("plugin %s not a transformer", p.id)
		}
		list = append(list, transformer{Transformer: one, origin: p.origin})
	}
	for _, one := range list {
		if err := t.ctx.Err(); err != nil {
			return err
		}
		before := a.selected
		err := a.transform(one.Transformer, one.origin)
		if one.patch != nil {
			err = t.entry(err, "patches", one.index, one.patch.Path)
		}
		if err != nil {
			return err
		}
		if one.patch != nil && one.patch.Target != nil {
			t.note(one, a.objects, a.selected > before)
		}
	}
	return nil
}

func (t *target) note(one transformer, m *objects, fitted bool) {
	if t.Patched == nil || t.ctx.Err() != nil {
		return
	}
	use := PatchUse{File: filepath.Join(t.at, t.file), Index: one.index, Target: *one.patch.Target, Fitted: fitted}
	for i := 0; !fitted && i < min(len(m.list), maxNear); i++ {
		use.Near = append(use.Near, m.list[i].CurId())
	}
	t.Patched(use)
}

// maxBatch is the limit, in bytes, that a transformer may add to objects before they are counted again.
const maxBatch = 32 << 20

func (a *accumulator) transform(t resmap.Transformer, origin *resource.Origin) error {
	p, patch := t.(*patchTransformer)
	if a.fixed = patch && p.keepsIdentities(); !a.fixed {
		a.forget()
	}
	var err error
	if text := textOf(t); text > 0 {
		err = a.inBatches(t, text)
	} else {
		err = t.Transform(a.objects)
	}
	if err != nil {
		return err
	}
	if !a.fixed {
		a.forget()
	}
	if _, moves := t.(*builtins.NamespaceTransformerPlugin); moves {
		if err := a.unique("namespace transformation produces ID conflict: %s"); err != nil {
			return err
		}
	}
	if origin != nil {
		for _, r := range a.list {
			if err := annotate(r, origin); err != nil {
				return err
			}
		}
		a.all = true
	}
	a.dropEmpty()
	return a.recount()
}

// textOf estimates the bytes that a transformer of single objects writes into one field. It returns 0 for other transformers.
func textOf(t resmap.Transformer) int64 {
	sum := func(m map[string]string) int64 {
		var sum int64
		for k, v := range m {
			sum += 2*nodeWeight + int64(len(k)+len(v))
		}
		return sum
	}
	switch t := t.(type) {
	case *builtins.LabelTransformerPlugin:
		return sum(t.Labels)
	case *builtins.AnnotationsTransformerPlugin:
		return sum(t.Annotations)
	case *builtins.NamespaceTransformerPlugin:
		return 2*nodeWeight + int64(len(t.Namespace))
	case *builtins.PrefixTransformerPlugin:
		return int64(len(t.Prefix))
	case *builtins.SuffixTransformerPlugin:
		return int64(len(t.Suffix))
	case *builtins.ImageTagTransformerPlugin:
		return 1 + int64(len(t.ImageTag.NewName)+len(t.ImageTag.NewTag)+len(t.ImageTag.Digest)+len(t.ImageTag.TagSuffix))
	}
	return 0
}

// inBatches runs a transformer on batches of objects whose estimated growth is within maxBatch.
func (a *accumulator) inBatches(t resmap.Transformer, text int64) error {
	batch := newObjects(a.what, a.budget)
	var growth int64
	work := int64(scanWork)
	if image, ok := t.(*builtins.ImageTagTransformerPlugin); ok {
		work += expressionWork * int64(len(image.ImageTag.Name)) // it is an expression, compiled for each image
	}
	run := func() error {
		a.touch(batch.list...)
		if err := a.spend(batch.list, work); err != nil {
			return err
		}
		if err := t.Transform(batch); err != nil {
			return err
		}
		batch.list, growth = nil, 0
		return a.recount()
	}
	for _, r := range a.list {
		most := text * a.weights[r].memory / nodeWeight
		if growth+most > maxBatch && len(batch.list) > 0 {
			if err := run(); err != nil {
				return err
			}
		}
		if most > maxBatch {
			if err := a.budget.Fits(a.what, a.sum+most); err != nil {
				return err
			}
		}
		batch.list, growth = append(batch.list, r), growth+most
	}
	return run()
}

func annotate(r *resource.Resource, origin *resource.Origin) error {
	known, err := r.GetOrigin()
	switch {
	case err != nil:
		return err
	case known == nil:
		return r.SetOrigin(origin)
	}
	return r.AddTransformation(origin)
}

// validate runs the validators of a kustomization. They must not change objects, except for a label.
func (t *target) validate(a *accumulator) error {
	plugins, err := t.plugins("validators", t.k.Validators)
	if err != nil {
		return err
	}
	for _, p := range plugins {
		one, ok := p.Configurable.(resmap.Transformer)
		if !ok {
			return fmt.Errorf("plugin %s not a transformer", p.id)
		}
		before := map[*resource.Resource]*resource.Resource{}
		for _, r := range a.list {
			before[r] = r.DeepCopy()
		}
		if err := a.transform(one, nil); err != nil {
			return err
		}
		for _, r := range a.list {
			now := r.DeepCopy()
			if labels := now.GetLabels(); labels[konfig.ValidatedByLabelKey] != "" {
				delete(labels, konfig.ValidatedByLabelKey)
				if err := now.SetLabels(labels); err != nil {
					return err
				}
			}
			if before[r] == nil || !reflect.DeepEqual(before[r].RNode, now.RNode) {
				return fmt.Errorf("validator shouldn't modify the resource map: %s", r.CurId())
			}
		}
		if len(before) != len(a.list) {
			return errors.New("validator shouldn't modify the resource map")
		}
	}
	return nil
}

// mergeVars adds vars, and records them in the objects that they refer to.
func (a *accumulator) mergeVars(vars []types.Var) error {
	for _, v := range vars {
		id := resid.NewResIdWithNamespace(v.ObjRef.GVK(), v.ObjRef.Name, v.ObjRef.Namespace)
		matches := id.GvknEquals
		if id.Namespace != "" || id.IsClusterScoped() {
			matches = id.Equals
		}
		if err := a.budget.Work(a.what, int64(len(a.list))*scanWork); err != nil {
			return err
		}
		found := a.GetMatchingResourcesByAnyId(matches)
		if len(found) > 1 {
			return fmt.Errorf("found %d resId matches for var %v (unable to disambiguate)", len(found), v)
		}
		for _, r := range found {
			r.AppendRefVarName(v)
		}
	}
	return a.vars.MergeSlice(vars)
}

// isInline reports whether an entry is an inline configuration, not a path.
func isInline(entry string) bool { return strings.ContainsAny(entry, "\n{") }
