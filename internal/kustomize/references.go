package kustomize

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/filters/nameref"
	"sigs.k8s.io/kustomize/api/filters/refvar"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/helmsrc/helmsrc/internal/edit"
)

// referredAnnotation is the annotation in which kustomize records referring objects. It is never read.
const referredAnnotation = "internal.config.kubernetes.io/refBy"

func (a *accumulator) updateReferences() error {
	named := map[string][]int{} // objects by the names that they had
	for i, r := range a.list {
		for _, id := range r.PrevIds() {
			if list := named[id.Name]; len(list) == 0 || list[len(list)-1] != i {
				named[id.Name] = append(list, i)
			}
		}
	}
	if len(named) == 0 {
		return nil
	}
	for _, r := range a.list {
		if err := a.updateOne(r, named); err != nil {
			return err
		}
	}
	a.forget()
	return a.recount()
}

func (a *accumulator) updateOne(r *resource.Resource, named map[string][]int) error {
	var filters []nameref.Filter
	first := r.OrgId()
	for _, reference := range a.config.NameReference {
		for _, field := range reference.Referrers {
			if first.IsSelected(&field.Gvk) {
				filters = append(filters, nameref.Filter{Referrer: r, NameFieldToUpdate: field, ReferralTarget: reference.Gvk})
			}
		}
	}
	if len(filters) == 0 {
		return nil
	}
	mentioned := map[int]bool{}
	edit.Each(r.YNode(), func(n *yaml.Node) {
		for _, i := range named[n.Value] {
			mentioned[i] = true
		}
	})
	candidates, err := a.referable(r, slices.Sorted(maps.Keys(mentioned)))
	if err != nil {
		return err
	}
	if err := a.spend(candidates.list, scanWork*int64(len(filters))); err != nil {
		return err
	}
	for _, f := range filters {
		f.ReferralCandidates = candidates
		if err := r.ApplyFilter(f); err != nil {
			return err
		}
	}
	a.touch(r)
	for _, c := range candidates.list {
		if err := c.PipeE(kyaml.ClearAnnotation(referredAnnotation)); err != nil {
			return err
		}
	}
	return nil
}

func (a *accumulator) referable(r *resource.Resource, mentioned []int) (*objects, error) {
	c := newObjects(a.what, a.budget)
	id := r.CurId()
	others, err := namespacesOf(r)
	if err != nil {
		return nil, err
	}
	for _, i := range mentioned {
		o := a.list[i]
		if target := o.CurId(); id.IsClusterScoped() || target.IsClusterScoped() || target.IsNsEquals(id) || others[o.GetNamespace()] {
			c.list = append(c.list, o)
		}
	}
	return c, nil
}

// namespacesOf returns the namespaces of the service accounts that a RoleBinding names.
func namespacesOf(r *resource.Resource) (map[string]bool, error) {
	if r.GetKind() != "RoleBinding" {
		return nil, nil
	}
	subjects, err := r.GetSlice("subjects")
	if err != nil {
		return nil, nil //nolint:nilerr // not a list of references
	}
	found := map[string]bool{}
	for _, s := range subjects {
		subject, _ := s.(map[string]any)
		if namespace, given := subject["namespace"]; given && subject["kind"] == "ServiceAccount" {
			name, ok := namespace.(string)
			if !ok {
				return nil, fmt.Errorf("Invalid Input: namespace is blank for resource %q", r.CurId())
			}
			found[name] = true
		}
	}
	return found, nil
}

func (a *accumulator) resolveVars() error {
	values := map[string]any{}
	longest := 0
	for _, v := range a.vars.AsSlice() {
		value, err := a.valueOfVar(v)
		if err != nil {
			return err
		}
		text, _ := value.(string)
		longest = max(longest, len(text))
		values[v.Name] = value
	}
	if len(values) == 0 {
		return nil
	}
	var references int64
	for _, r := range a.list {
		references += variablesIn(r.YNode())
	}
	if references > maxVariables/int64(max(longest, 1)) {
		return fmt.Errorf("vars: %d references to values of up to %d bytes", references, longest)
	}
	if err := a.spend(a.list, scanWork*int64(len(a.config.VarReference))); err != nil {
		return err
	}
	counts := map[string]int{}
	mapping := refvar.MakePrimitiveReplacer(counts, values)
	for _, r := range a.list {
		for _, field := range a.config.VarReference {
			if err := r.ApplyFilter(refvar.Filter{MappingFunc: mapping, FieldSpec: field}); err != nil {
				return err
			}
		}
	}
	a.all = true
	a.forget()
	return a.recount()
}

// maxVariables is the limit, in bytes, of the values that vars add to objects.
const maxVariables = 32 << 20

// variablesIn returns the number of possible references to vars.
func variablesIn(n *yaml.Node) (count int64) {
	edit.Each(n, func(n *yaml.Node) { count += int64(strings.Count(n.Value, "$(")) })
	return count
}

func (a *accumulator) valueOfVar(v types.Var) (any, error) {
	for _, r := range a.list {
		if !slices.Contains(r.GetRefVarNames(), v.Name) {
			continue
		}
		value, err := r.GetFieldValue(v.FieldRef.FieldPath)
		if err != nil {
			return nil, fmt.Errorf("field specified in var '%v' not found in corresponding resource", v)
		}
		return value, nil
	}
	return nil, fmt.Errorf("var '%v' cannot be mapped to a field in the set of known resources", v)
}
