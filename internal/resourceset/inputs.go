package resourceset

import (
	"fmt"
	"hash/adler32"
	"maps"
	"slices"
	"strings"
)

// inputs returns the sets of values, and whether the set has any inputs. A set without inputs is rendered once, with null.
func (s *Set) inputs() (list []map[string]any, given bool, err error) {
	if len(s.Spec.Inputs) == 0 && len(s.Spec.InputsFrom) == 0 {
		return []map[string]any{nil}, false, nil
	}
	own := inputGroup{name: s.Name}
	for _, in := range s.Spec.Inputs {
		own.values = append(own.values, s.provided(in, Kind, s.Namespace, s.Name))
	}
	groups := []inputGroup{own}
	providers, err := s.providers()
	if err != nil {
		return nil, true, err
	}
	for _, p := range providers {
		if p.Disabled {
			groups = append(groups, inputGroup{name: p.Name})
			continue
		}
		values := s.provided(p.Spec.DefaultValues, ProviderKind, p.Namespace, p.Name)
		values["id"] = checksum(p.Namespace + "/" + p.Name)
		groups = append(groups, inputGroup{p.Name, []map[string]any{values}})
	}
	if s.Spec.InputStrategy.Name == "Permute" {
		list, err = permute(groups, s.Spec.InputStrategy.IncludeEmptyProviders)
		return list, true, err
	}
	for _, g := range groups {
		list = append(list, g.values...)
	}
	return list, true, nil
}

func checksum(text string) string { return fmt.Sprint(adler32.Checksum([]byte(text))) }

// provided returns values with their origin. It removes nulls, as the API server does.
func (s *Set) provided(values map[string]any, kind, namespace, name string) map[string]any {
	provided := map[string]any{}
	for k, v := range values {
		if v != nil {
			provided[k] = v
		}
	}
	provided["provider"] = map[string]any{"apiVersion": Group + "/v1", "kind": kind, "namespace": namespace, "name": name}
	return provided
}

// providers returns the providers that the set refers to, each once, sorted by name. All of them must be known and static.
func (s *Set) providers() ([]Provider, error) {
	chosen := map[string]Provider{}
	for _, from := range s.Spec.InputsFrom {
		found := false
		for _, p := range s.Providers {
			if p.Namespace != s.Namespace || from.Name != "" && p.Name != from.Name || from.Name == "" && !from.Selector.matches(p.Labels) {
				continue
			}
			if p.Spec.Type != Static && !p.Disabled {
				return nil, &ServerError{fmt.Sprintf("%s %s/%s of type %s requests its inputs from a server", ProviderKind, p.Namespace, p.Name, p.Spec.Type)}
			}
			chosen[p.Name], found = p, true
		}
		if !found && from.Name != "" {
			return nil, &ServerError{fmt.Sprintf("%s %s/%s is not in the input", ProviderKind, s.Namespace, from.Name)}
		}
	}
	var list []Provider
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		list = append(list, chosen[name])
	}
	return list, nil
}

func (s *Selector) matches(labels map[string]string) bool {
	if s == nil {
		return false
	}
	for k, v := range s.MatchLabels {
		if labels[k] != v {
			return false
		}
	}
	for _, e := range s.MatchExpressions {
		value, there := labels[e.Key]
		in := there && slices.Contains(e.Values, value)
		ok := map[string]bool{"In": in, "NotIn": !in, "Exists": there, "DoesNotExist": !there}[e.Operator]
		if !ok {
			return false
		}
	}
	return true
}

type inputGroup struct {
	name   string
	values []map[string]any
}

// permute combines the values of each provider with those of all other providers, under normalized names. With countEmpty, a
// provider without values counts, and there are no combinations.
func permute(groups []inputGroup, countEmpty bool) ([]map[string]any, error) {
	groups = slices.DeleteFunc(groups, func(g inputGroup) bool { return len(g.values) == 0 && !countEmpty })
	if len(groups) == 0 {
		return nil, nil
	}
	list, ids := []map[string]any{{}}, []string{""}
	for _, g := range groups {
		name := normalized(g.name)
		if name == "" {
			return nil, &Error{Path: []any{"spec", "inputsFrom"}, Err: fmt.Errorf("normalized provider name is empty: '%s'", g.name)}
		}
		if n := len(list) * len(g.values); n > maxPermutations {
			return nil, &Error{Path: []any{"spec", "inputStrategy"}, Err: fmt.Errorf("%d permutations of inputs, more than %d", n, maxPermutations)}
		}
		var next []map[string]any
		var nextIDs []string
		for i, base := range list {
			for j, values := range g.values {
				combined := maps.Clone(base)
				combined[name] = values
				id := fmt.Sprintf("%s%s=%d/", ids[i], name, j)
				combined["id"] = checksum(strings.TrimSuffix(id, "/"))
				next, nextIDs = append(next, combined), append(nextIDs, id)
			}
		}
		list, ids = next, nextIDs
	}
	return list, nil
}

// normalized returns a name in lower case, with its words joined by underscores. Characters except dashes are left out.
func normalized(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case r == '-' || r == '_':
			return '_'
		}
		return -1
	}, strings.ToLower(name))
	return strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r == '_' }), "_")
}
