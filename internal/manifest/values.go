package manifest

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Leaves visits the scalars of a value in the types of JSON, and its nulls, in a fixed order, each with its path. It
// skips the keys in without.
func Leaves(v any, without map[string]bool) iter.Seq2[[]any, any] {
	return func(yield func([]any, any) bool) { leaves(v, nil, without, yield) }
}

func leaves(v any, path []any, without map[string]bool, yield func([]any, any) bool) bool {
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			if !leaves(item, append(path[:len(path):len(path)], i), without, yield) {
				return false
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if !without[key] && !leaves(v[key], append(path[:len(path):len(path)], key), without, yield) {
				return false
			}
		}
	default:
		return yield(path, v)
	}
	return true
}

// Dotted returns a path as people write it: spec.resources[2].name.
func Dotted(path ...any) string {
	var b strings.Builder
	for _, step := range path {
		if _, index := step.(int); index {
			fmt.Fprintf(&b, "[%d]", step)
		} else {
			fmt.Fprintf(&b, ".%v", step)
		}
	}
	return strings.TrimPrefix(b.String(), ".")
}

// Shared returns value with every part that equals its counterpart in given replaced by that part, and reports whether the
// two are equal. This saves memory, since a build changes little. value is changed in place; the shared parts must not be.
func Shared(value, given any) (any, bool) {
	same := false
	switch value := value.(type) {
	case map[string]any:
		known, _ := given.(map[string]any)
		same = known != nil && len(known) == len(value)
		for key, item := range value {
			other, there := known[key]
			part, equal := Shared(item, other)
			value[key], same = part, same && there && equal
		}
	case []any:
		known, _ := given.([]any)
		same = known != nil && len(known) == len(value)
		for i := range min(len(known), len(value)) {
			part, equal := Shared(value[i], known[i])
			value[i], same = part, same && equal
		}
	default:
		same = value == given
	}
	if same {
		return given, true
	}
	return value, false
}
