package kustomize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/builtins" //nolint:staticcheck // kustomize has no other door to its transformers
	"sigs.k8s.io/kustomize/api/filters/patchjson6902"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/kio/kioutil"
	"sigs.k8s.io/yaml"
)

// patchTransformer patches objects. kustomize's transformer applies strategic merge patches. JSON patches are parsed once, and
// those with copy operations are applied in steps, because each copy may double an object.
type patchTransformer struct {
	resmap.TransformerPlugin
	source  Source
	target  *types.Selector
	options *types.PatchArgs
	steps   []string // of a JSON patch, each ends with a copy or the patch
}

// Config reads the configuration of a PatchTransformer or PatchJson6902Transformer.
func (p *patchTransformer) Config(h *resmap.PluginHelpers, text []byte) error {
	var c struct {
		Kind    string           `json:"kind"`
		Path    string           `json:"path"`
		Patch   string           `json:"patch"`
		JSONOp  string           `json:"jsonOp"`
		Target  *types.Selector  `json:"target"`
		Options *types.PatchArgs `json:"options"`
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		return err
	}
	p.target, p.options = c.Target, c.Options
	p.TransformerPlugin = builtins.NewPatchTransformerPlugin()
	if c.Kind == "PatchJson6902Transformer" {
		p.TransformerPlugin = builtins.NewPatchJson6902TransformerPlugin()
		if c.Target == nil {
			return fmt.Errorf("must specify a target for JSON patch %s", c.JSONOp)
		}
	}
	patch := []byte(c.Patch + c.JSONOp)
	if err := p.source.Check(patch); err != nil {
		return err
	}
	if err := p.TransformerPlugin.Config(h, text); err != nil {
		return err
	}
	if c.Path != "" {
		var err error
		if patch, err = h.Loader().Load(c.Path); err != nil {
			return err
		}
	}
	if c.Target == nil { // the patch is merged with the object that it names
		for d := yamlv3.NewDecoder(bytes.NewReader(patch)); !builtIn; {
			var n yamlv3.Node
			if d.Decode(&n) != nil {
				break
			}
			prepareMerge(&n)
		}
		return nil
	}
	var operations []json.RawMessage
	if yaml.Unmarshal(patch, &operations) != nil || len(operations) == 0 {
		return nil
	}
	var step []json.RawMessage
	for i, operation := range operations {
		step = append(step, operation)
		var o struct {
			Op string `json:"op"`
		}
		if _ = json.Unmarshal(operation, &o); o.Op != "copy" && i < len(operations)-1 {
			continue
		}
		text, err := json.Marshal(step)
		if err != nil {
			return err
		}
		p.steps, step = append(p.steps, string(text)), nil
	}
	return nil
}

// keepsIdentities reports whether the patch cannot change the current or former identities of objects.
func (p *patchTransformer) keepsIdentities() bool {
	return len(p.steps) == 0 && p.options == nil && p.target == nil
}

// Transform patches the objects that the target matches.
func (p *patchTransformer) Transform(list resmap.ResMap) error {
	m, ok := list.(*objects)
	if !ok || len(p.steps) == 0 {
		return p.TransformerPlugin.Transform(list)
	}
	selected, err := m.Select(*p.target)
	if err != nil {
		return err
	}
	if _, err := (patchjson6902.Filter{Patch: p.steps[0]}).Filter(nil); err != nil {
		return err
	}
	for _, r := range selected {
		if err := p.apply(m, r); err != nil {
			return err
		}
	}
	return nil
}

func (p *patchTransformer) apply(m *objects, r *resource.Resource) error {
	if !slices.ContainsFunc(r.PrevIds(), r.CurId().Equals) { // kustomize adds one for each patch
		r.StorePreviousId()
	}
	noted := kioutil.GetInternalAnnotations(&r.RNode)
	before := m.weights[r]
	for _, step := range p.steps {
		if err := m.spend([]*resource.Resource{r}, int64(len(step))); err != nil {
			return err
		}
		if err := r.ApplyFilter(patchjson6902.Filter{Patch: step}); err != nil {
			return err
		}
		if err := m.copied(r, before); err != nil {
			return err
		}
	}
	annotations := r.GetAnnotations()
	maps.Copy(annotations, noted)
	return r.SetAnnotations(annotations)
}
