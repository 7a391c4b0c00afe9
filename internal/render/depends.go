package render

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/cel"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/generate"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// warnDependencies warns of dependencies of Kustomizations that no cluster would ever fulfil. They have no influence on
// what is built.
func (b *builder) warnDependencies() {
	for _, name := range slices.Sorted(maps.Keys(b.kustomizations)) {
		o := b.kustomizations[name]
		b.warnSource(o)
		for _, f := range cel.Faults(o.Content) {
			if !o.ReferenceOnly {
				b.errs = append(b.errs, manifest.Fault(o, finding.WithCode(finding.InvalidValue, f.Err), f.Path...))
			}
		}
		for i, on := range dependenciesOf(o) {
			_, there := b.kustomizations[on]
			path := []any{"spec", "dependsOn", i, "name"}
			if !there && len(b.partial) == 0 && !b.alone {
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
	ref := kustomizev1.CrossNamespaceSourceReference{Kind: manifest.At[string](o.Content, "spec", "sourceRef", "kind"), Name: manifest.At[string](o.Content, "spec", "sourceRef", "name")}
	namespace := cmp.Or(manifest.At[string](o.Content, "spec", "sourceRef", "namespace"), o.Namespace)
	key := datumKey(ref.Kind, namespace, ref.Name)
	if ref.Kind == generate.Kind || key == datumKey("GitRepository", bootstrapName, bootstrapName) || b.sourceFor(o, b.sources, ref.Kind, namespace, ref.Name) != nil {
		return
	}
	given, _, err := b.standIn(ref.Kind, namespace, ref.Name)
	if given != nil || err != nil || b.elsewhere(nil, ref, namespace, b.homeOf(o), manifest.At[string](o.Content, "spec", "path")) != "" {
		return // which is reported
	}
	hint := ""
	if beside := b.besides(o, ref.Kind); beside != nil {
		hint = fmt.Sprintf("%s/%s/%s is beside it, and no Kustomization of that file is from there", beside.Kind, beside.Namespace, beside.Name)
	} else if begun := b.plan.begun; len(b.partial) == 0 && len(begun) > 0 && !begun[key] {
		hint = "the clusters of the input begin with " + strings.Join(slices.Sorted(maps.Keys(begun)), ", ")
	} else {
		return // the cluster may have it
	}
	b.warn(finding.MissingSource, o, fmt.Sprintf("Source '%s/%s/%s' not found", ref.Kind, namespace, ref.Name), hint, "spec", "sourceRef", "name")
}

// besides is a source of a kind that is in the file of a Kustomization, nil if there is none or a Kustomization of the file has it. One
// who writes both means it.
func (b *builder) besides(o *manifest.Object, kind string) *manifest.Object {
	real, err := b.disk.absolute(o.Pos.File)
	if err != nil {
		return nil
	}
	f, err := b.repository(filepath.Dir(real)).file(real)
	if err != nil {
		return nil
	}
	taken := map[string]bool{}
	for _, k := range f.Kustomizations() {
		taken[sourceKey(k)] = true
	}
	for _, source := range f.Objects() {
		if source.Group() == manifest.SourceGroup && source.Kind == kind && !taken[datumKey(kind, source.Namespace, source.Name)] {
			return source
		}
	}
	return nil
}

// dependenciesOf are the namespaces and names that a Kustomization waits for.
func dependenciesOf(o *manifest.Object) []string {
	var names []string
	for _, ref := range manifest.At[[]any](o.Content, "spec", "dependsOn") {
		names = append(names, cmp.Or(manifest.At[string](ref, "namespace"), o.Namespace)+"/"+manifest.At[string](ref, "name"))
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
