package render

import (
	"cmp"
	"fmt"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/generate"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// warnDependencies warns of dependencies of Kustomizations that no cluster would ever fulfil. They have no influence on
// what is built.
func (b *builder) warnDependencies() {
	for _, name := range sortedKeys(b.kustomizations) {
		o := b.kustomizations[name]
		b.warnSource(o)
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

// warnSource reports a source of a Kustomization that nothing in the input defines, although the input says what its clusters
// begin with. Its path is built all the same.
func (b *builder) warnSource(o *manifest.Object) {
	ref := kustomizev1.CrossNamespaceSourceReference{Kind: textAt(o.Content, "spec", "sourceRef", "kind"), Name: textAt(o.Content, "spec", "sourceRef", "name")}
	namespace := cmp.Or(textAt(o.Content, "spec", "sourceRef", "namespace"), o.Namespace)
	key := datumKey(ref.Kind, namespace, ref.Name)
	if len(b.own) == 0 || len(b.partial) > 0 || ref.Kind == generate.Kind || b.own[key] || key == datumKey("GitRepository", bootstrapName, bootstrapName) || b.sourceFor(o, b.sources, ref.Kind, namespace, ref.Name) != nil {
		return
	}
	given, _, err := b.standIn(ref.Kind, namespace, ref.Name)
	if given != nil || err != nil || b.elsewhere(nil, ref, namespace, b.homeOf(o), textAt(o.Content, "spec", "path")) != "" {
		return // which is reported
	}
	b.warn(finding.MissingSource, o, fmt.Sprintf("Source '%s/%s/%s' not found", ref.Kind, namespace, ref.Name), "the clusters of the input begin with "+strings.Join(sortedKeys(b.own), ", "), "spec", "sourceRef", "name")
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
