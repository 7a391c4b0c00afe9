package render

import (
	"fmt"
	"strings"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// warnDependencies warns of dependencies of Kustomizations that no cluster would ever fulfil. They have no influence on
// what is built.
func (b *builder) warnDependencies() {
	for _, name := range sortedKeys(b.kustomizations) {
		o := b.kustomizations[name]
		for i, on := range dependenciesOf(o) {
			_, there := b.kustomizations[on]
			path := []any{"spec", "dependsOn", i, "name"}
			if !there && len(b.partial) == 0 {
				_, short, _ := strings.Cut(on, "/")
				b.warn(finding.MissingDependency, o, fmt.Sprintf("unable to get '%s' dependency: kustomizations.%s %q not found", on, manifest.KustomizeGroup, short), "", path...)
			}
			if way := b.dependencyPath(on, name, map[string]bool{}); way != nil {
				b.warn(finding.DependencyCycle, o, "dependsOn forms a cycle, so none of these is ever applied: "+finding.Cycle(way), "", path...)
			}
		}
	}
}

// dependenciesOf are the namespaces and names that a Kustomization waits for.
func dependenciesOf(o *manifest.Object) []string {
	spec, _ := o.Content["spec"].(map[string]any)
	list, _ := spec["dependsOn"].([]any)
	var names []string
	for _, element := range list {
		ref, _ := element.(map[string]any)
		name, _ := ref["name"].(string)
		namespace, _ := ref["namespace"].(string)
		if namespace == "" {
			namespace = o.Namespace
		}
		names = append(names, namespace+"/"+name)
	}
	return names
}

// dependencyPath returns a path along dependsOn from one Kustomization to another, or nil.
func (b *builder) dependencyPath(from, to string, seen map[string]bool) []string {
	if from == to {
		return []string{to}
	}
	o := b.kustomizations[from]
	if o == nil || seen[from] || len(seen) >= maxDependencies {
		return nil
	}
	seen[from] = true
	for _, next := range dependenciesOf(o) {
		if way := b.dependencyPath(next, to, seen); way != nil {
			return append([]string{from}, way...)
		}
	}
	return nil
}

// maxDependencies bounds how many Kustomizations a circle is looked for among.
const maxDependencies = 1000
