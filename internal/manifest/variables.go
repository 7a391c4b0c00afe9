package manifest

import (
	"maps"
	"regexp"
	"slices"
	"sync"
)

// Variable is a ${VAR} that was not substituted.
type Variable struct {
	Name string
	Path []any // of the field that holds it
	Pos  Pos
}

// expression is what Flux substitutes: a name in braces, with or without a default or another operation. $${VAR} is how
// one writes a literal ${VAR}.
var expression = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$?\$\{([_A-Za-z][_A-Za-z0-9]*)[^}]*\}`) })

// Variables lists the names of the variables in a text.
func Variables(text string) []string {
	var names []string
	for _, m := range expression().FindAllStringSubmatch(text, -1) {
		if m[0][1] != '$' {
			names = append(names, m[1])
		}
	}
	return names
}

// variables walks a value in a fixed order.
func variables(v any, path []any) []Variable {
	var found []Variable
	step := func(k, v any) {
		found = append(found, variables(v, append(path[:len(path):len(path)], k))...)
	}
	switch v := v.(type) {
	case string:
		for _, name := range Variables(v) {
			found = append(found, Variable{Name: name, Path: path})
		}
	case []any:
		for i, e := range v {
			step(i, e)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			step(k, v[k])
		}
	}
	return found
}
