package migrate

import (
	"maps"
	"reflect"
	"regexp"
	"slices"

	"github.com/helmsrc/helmsrc/internal/conceal"
)

// rewritten returns the fields of a spec that a migration changes: they are compared in another way, or need no comparison.
func rewritten(kind string) []string {
	switch kind {
	case releaseKind:
		return []string{"chart", "chartRef", "values", "valuesFrom"}
	case chartKind:
		return []string{"accessFrom", "valuesFile", "valuesFiles"}
	case repositoryKind:
		return []string{"type"}
	}
	return removedFields(kind)
}

// Differences returns the fields in which an object differs before and after a migration, such as "spec.patches". It ignores
// API versions and the fields that a migration rewrites.
func Differences(before, after map[string]any) []string {
	kind := str(before, "kind")
	version := regexp.MustCompile(`\bv[0-9]+((alpha|beta)[0-9]+)?\b`)
	var fields []string
	for _, parent := range []string{"", "spec"} {
		old, now := before, after
		if parent != "" {
			old, _ = inside(before, parent).(map[string]any)
			now, _ = inside(after, parent).(map[string]any)
			parent += "."
		}
		for _, name := range slices.Compact(slices.Sorted(func(yield func(string) bool) {
			maps.Keys(old)(yield)
			maps.Keys(now)(yield)
		})) {
			if name == "spec" || name == "apiVersion" || name == "status" || parent != "" && slices.Contains(rewritten(kind), name) {
				continue
			}
			if !reflect.DeepEqual(unversioned(version, old[name]), unversioned(version, now[name])) {
				fields = append(fields, parent+name)
			}
		}
	}
	return fields
}

// unversioned returns a value without the API versions in its texts.
func unversioned(version *regexp.Regexp, v any) any {
	return conceal.Fields(v, func(_, text string) string { return version.ReplaceAllString(text, "v") })
}
