package kustomize

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/filters/replacement"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/utils"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"
)

// replacementTransformer copies fields of an object to other objects, field by field: each copy may double the copied value.
type replacementTransformer struct{ list []types.Replacement }

// Config reads the replacements, inline or from files.
func (p *replacementTransformer) Config(h *resmap.PluginHelpers, text []byte) error {
	var c struct {
		Replacements []types.ReplacementField `json:"replacements"`
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		return err
	}
	for _, r := range c.Replacements {
		switch {
		case r.Path == "":
			p.list = append(p.list, r.Replacement)
			continue
		case r.Source != nil || len(r.Targets) != 0:
			return errors.New("cannot specify both path and inline replacement")
		}
		text, err := h.Loader().Load(r.Path)
		if err != nil {
			return err
		}
		var content any
		if err := yaml.Unmarshal(text, &content); err != nil {
			return err
		}
		var list []types.Replacement
		switch content.(type) {
		case []any:
			err = yaml.Unmarshal(text, &list)
		case map[string]any:
			list = make([]types.Replacement, 1)
			err = yaml.Unmarshal(text, &list[0])
		default:
			err = fmt.Errorf("unsupported replacement type encountered within replacement path: %v", reflect.ValueOf(content).Kind())
		}
		if err != nil {
			return err
		}
		p.list = append(p.list, list...)
	}
	return nil
}

// Transform applies the replacements.
func (p *replacementTransformer) Transform(list resmap.ResMap) error {
	m, ok := list.(*objects)
	if !ok {
		return list.ApplyFilter(replacement.Filter{Replacements: p.list})
	}
	for _, r := range p.list {
		for _, step := range stepsOf(r) {
			if err := m.replace(step); err != nil {
				return err
			}
		}
	}
	return nil
}

// stepsOf splits a replacement into steps of one field. With a delimiter it stays whole: parts are read before values change.
func stepsOf(r types.Replacement) []types.Replacement {
	if r.Source == nil || r.Source.Options != nil && r.Source.Options.Delimiter != "" {
		return []types.Replacement{r}
	}
	var list []types.Replacement
	for _, t := range r.Targets {
		if t == nil || len(t.FieldPaths) < 2 {
			list = append(list, types.Replacement{Source: r.Source, SourceValue: r.SourceValue, Targets: []*types.TargetSelector{t}})
			continue
		}
		for _, path := range t.FieldPaths {
			one := *t
			one.FieldPaths = []string{path}
			list = append(list, types.Replacement{Source: r.Source, SourceValue: r.SourceValue, Targets: []*types.TargetSelector{&one}})
		}
	}
	if len(list) == 0 {
		return []types.Replacement{r}
	}
	return list
}

func (m *objects) replace(r types.Replacement) error {
	if err := m.budget.Work(m.what, int64(len(m.list))*scanWork*int64(1+len(r.Targets))); err != nil {
		return err
	}
	source, value := m.valueOf(r)
	var growth int64
	changed := map[*resource.Resource]weight{}
	for _, t := range r.Targets {
		selected, err := m.targets(t)
		if err != nil {
			return err
		}
		for _, path := range t.FieldPaths {
			pattern := strings.ContainsAny(path, "*[")
			for _, target := range selected {
				times := int64(1)
				if pattern {
					times = m.weights[target].memory / nodeWeight
				}
				growth += times * (value + nodeWeight)
				if pattern && target == source && overlap(r.Source.FieldPath, path) {
					return fmt.Errorf("replacements: %s is copied into itself", r.Source.FieldPath)
				}
				changed[target] = m.weights[target]
			}
		}
	}
	if err := m.budget.Work(m.what, growth); err != nil {
		return err
	}
	if err := m.budget.Fits(m.what, m.sum+growth); err != nil {
		return err
	}
	nodes := make([]*kyaml.RNode, len(m.list))
	for i, r := range m.list {
		nodes[i] = &r.RNode
	}
	if _, err := (replacement.Filter{Replacements: []types.Replacement{r}}).Filter(nodes); err != nil {
		return err
	}
	var work int64
	for target, before := range changed {
		if err := m.copied(target, before); err != nil {
			return err
		}
		work += m.weights[target].work
	}
	return m.budget.Work(m.what, work)
}

// valueOf returns the source object of a replacement and the weight of the copied value. kustomize reports errors.
func (m *objects) valueOf(r types.Replacement) (*resource.Resource, int64) {
	if r.Source == nil {
		if r.SourceValue == nil {
			return nil, 0
		}
		return nil, int64(len(*r.SourceValue))
	}
	path := cmp.Or(r.Source.FieldPath, types.DefaultReplacementFieldPath)
	for _, o := range m.list {
		for _, id := range append(o.PrevIds(), o.CurId()) {
			if !id.IsSelectedBy(r.Source.ResId) {
				continue
			}
			field, err := o.Pipe(kyaml.Lookup(utils.SmarterPathSplitter(path, ".")...))
			if err != nil || field.IsNilOrEmpty() {
				return nil, 0
			}
			return o, weightOf(field.YNode()).memory
		}
	}
	return nil, 0
}

func (m *objects) targets(t *types.TargetSelector) ([]*resource.Resource, error) {
	if t == nil || t.Select == nil {
		return nil, errors.New("target must specify resources to select")
	}
	expressions, err := types.NewTargetSelectorRegex(t)
	if err != nil {
		return nil, fmt.Errorf("error creating target selector: %w", err)
	}
	if len(t.FieldPaths) == 0 {
		t.FieldPaths = []string{types.DefaultReplacementFieldPath}
	}
	steps := 0
	for _, s := range append(t.Reject[:len(t.Reject):len(t.Reject)], t.Select) {
		steps += stepsIn(s.Group, s.Version, s.Kind, s.Name, s.Namespace)
	}
	var found []*resource.Resource
	for _, o := range m.list {
		ids := append(o.PrevIds(), o.CurId())
		if err := m.matching(steps, ids...); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(ids, expressions.Selects) && !expressions.RejectsAny(ids) {
			found = append(found, o)
		}
	}
	return found, nil
}

func overlap(a, b string) bool {
	x, y := utils.SmarterPathSplitter(a, "."), utils.SmarterPathSplitter(b, ".")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] && x[i] != "*" && y[i] != "*" && !strings.Contains(x[i]+y[i], "[") {
			return false
		}
	}
	return true
}
