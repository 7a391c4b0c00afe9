package render

import (
	"cmp"
	"errors"
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

func (b *builder) missing(f *flux, ref kustomizev1.SubstituteReference, d *datum) *missing {
	set := finding.SetVariables
	if !b.o.Tolerant {
		set += finding.LetBeEmpty
	}
	name := fmt.Sprintf("%s %s/%s", ref.Kind, f.object.Namespace, ref.Name)
	m, err := &missing{}, error(&manifest.NotFoundError{Kind: ref.Kind, Namespace: f.object.Namespace, Name: ref.Name})
	switch generator := b.generator(ref.Kind, f.object.Namespace, ref.Name); {
	case d != nil:
		err, m.hint = errors.New("encrypted with SOPS"), d.sealed+"; or "+set
		if d.inCluster {
			m.reason = "it is encrypted with SOPS: " + d.sealed
		}
	case generator != "":
		m.reason = generator + " creates it, in the cluster only"
		m.hint = generator + " makes " + name + " in the cluster only: " + set
	default:
		m.hint = fmt.Sprintf(finding.AddFile, name) + ", or " + set
	}
	m.text = fmt.Sprintf("substitute from '%s/%s' error: %v", ref.Kind, ref.Name, err)
	return m
}

// addGenerated records the objects that a controller in the cluster makes from an object.
func (b *builder) addGenerated(content map[string]any) {
	_, kind, _, _ := manifest.Identify(content)
	for _, made := range manifest.GeneratedBy(content) {
		b.generated[datumKey(made.Generates.Kind, made.Generates.Namespace, made.Generates.Name)] = kind
	}
}

// generator returns the kind of the object that makes a Secret or ConfigMap in the cluster, "" if unknown.
func (b *builder) generator(kind, namespace, name string) string {
	for _, in := range []string{namespace, ""} { // the latter for any
		key := datumKey(kind, in, name)
		if generator := b.generated[key]; generator != "" {
			return withArticle(generator)
		}
		for _, p := range b.index.generators[key] {
			if !b.taken(p.path) {
				return withArticle(p.object.Kind)
			}
		}
	}
	return ""
}

// warnAbsent warns of missing ConfigMaps and Secrets. It runs last, because an object of a later Kustomization may make them in
// the cluster.
func (b *builder) warnAbsent() {
	for _, a := range b.absent {
		ref := a.flux.spec.PostBuild.SubstituteFrom[a.at]
		missing := b.missing(a.flux, ref, a.d)
		if missing.reason != "" && b.o.Tolerant {
			b.notice(Notice{Text: fmt.Sprintf("the variables of %s %s are not known: %s", ref.Kind, ref.Name, missing.reason)})
			continue
		}
		at := a.flux.object.Position("spec", "postBuild", "substituteFrom", a.at)
		b.warnAt(finding.MissingVariables, a.flux.object, missing.text, missing.hint, at)
	}
}

// warnSealed warns of a Secret that makes its Kustomization fail. A Kustomization that is not applied here may be patched before
// it enters the cluster, and is skipped.
func (b *builder) warnSealed(f *flux, obj *manifest.Object) {
	if f.spec.Decryption != nil || obj.Kind != "Secret" || !strings.HasPrefix(f.object.Built, "Kustomization ") {
		return
	}
	text := fmt.Sprintf("of %s: Secret/%s/%s is SOPS encrypted, configuring decryption is required for this secret to be reconciled",
		f.name(), obj.Namespace, obj.Name)
	b.warnAt(finding.NoDecryption, obj, text, "", obj.Pos)
}

func withArticle(kind string) string {
	switch {
	case kind == "":
		return ""
	case strings.ContainsAny(kind[:1], "AEIO"):
		return "an " + kind
	}
	return "a " + kind
}

// warnDependencies warns of dependencies of Kustomizations that cannot be met in any cluster. They do not influence the
// build.
func (b *builder) warnDependencies() {
	all := slices.Sorted(maps.Keys(b.kustomizations))
	names := map[string][]string{} // by namespace
	for _, name := range all {
		namespace, name, _ := strings.Cut(name, "/")
		names[namespace] = append(names[namespace], name)
	}
	next := func(name string) []string {
		if o := b.kustomizations[name]; o != nil {
			return dependenciesOf(o)
		}
		return nil
	}
	for _, name := range all {
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
			if !there && !b.alone {
				b.warnDependency(o, on, names, path)
			}
			if cycle := finding.DependencyPath(on, name, next); cycle != nil {
				b.warn(finding.DependencyCycle, o, "dependsOn forms a cycle, so none of these is ever applied: "+finding.Cycle(cycle, 0), "", path...)
			}
		}
	}
}

// warnDependency warns of a missing dependency. If a part of the input is elsewhere, the dependency may be there too: then
// warnDependency reports only names that look like a misspelling of another one.
func (b *builder) warnDependency(o *manifest.Object, on string, names map[string][]string, path []any) {
	namespace, name, _ := strings.Cut(on, "/")
	text, hint := fmt.Sprintf("unable to get '%s' dependency: kustomizations.%s %q not found", on, manifest.KustomizeGroup, name), ""
	if len(b.partial) > 0 {
		near, ok := finding.Nearest(name, names[namespace])
		own := append(dependenciesOf(o), o.Namespace+"/"+o.Name)
		if !ok || variant(name, near) || slices.Contains(own, namespace+"/"+near) {
			return
		}
		text = fmt.Sprintf("dependency '%s' is not in the input; it may be in a missing part of %s", on, b.partial[0])
		hint = "did you mean " + near + "?"
	}
	b.warn(finding.MissingDependency, o, text, hint, path...)
}

// variant reports whether two names differ in their last word and that is not a misspelling, as in tenant-1 and tenant-2.
func variant(name, other string) bool {
	begin := strings.LastIndex(name, "-") + 1
	end, ok := strings.CutPrefix(other, name[:begin])
	_, near := finding.Nearest(name[begin:], []string{end})
	return ok && (!near || len(name)-begin <= 2)
}

// warnSource reports a source of a Kustomization that the input does not define, although the input names the sources that its
// clusters begin with. The path is still built.
func (b *builder) warnSource(o *manifest.Object) {
	ref := sourceRef(o)
	key := ref.key()
	if ref.Kind == generate.Kind || key == datumKey("GitRepository", bootstrapName, bootstrapName) || b.sourceFor(o, b.sources, ref) != nil {
		return
	}
	given, _, err := b.standIn(ref)
	if given != nil || err != nil || b.elsewhere(nil, ref, b.homeOf(o), manifest.At[string](o.Content, "spec", "path")) != "" {
		return // already reported
	}
	hint := ""
	if beside := b.besides(o, ref.Kind); beside != nil {
		hint = fmt.Sprintf("%s/%s/%s is beside it, but no Kustomization of that file uses it", beside.Kind, beside.Namespace, beside.Name)
	} else if begun := b.plan.begun; len(b.partial) == 0 && len(begun) > 0 && !begun[key] {
		hint = "the clusters of the input begin with " + strings.Join(slices.Sorted(maps.Keys(begun)), ", ")
	} else {
		return // the cluster may have it
	}
	b.warn(finding.MissingSource, o, fmt.Sprintf("Source '%s/%s/%s' not found", ref.Kind, ref.Namespace, ref.Name), hint, "spec", "sourceRef", "name")
}

// besides returns a source of a kind in the file of a Kustomization, nil if the file has no other source or one of its
// Kustomizations uses it. A source beside a Kustomization is probably meant for it.
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
		taken[sourceRef(k).key()] = true
	}
	for _, source := range f.Objects() {
		if source.Group() == manifest.SourceGroup && source.Kind == kind && !taken[datumKey(kind, source.Namespace, source.Name)] {
			return source
		}
	}
	return nil
}

func dependenciesOf(o *manifest.Object) []string {
	var names []string
	for _, ref := range manifest.At[[]any](o.Content, "spec", "dependsOn") {
		names = append(names, cmp.Or(manifest.At[string](ref, "namespace"), o.Namespace)+"/"+manifest.At[string](ref, "name"))
	}
	return names
}

func (b *builder) noteUnset(o *manifest.Object, names []string, hint string, open bool) {
	if o.ReferenceOnly {
		return
	}
	for _, name := range names {
		b.unset[name] = append(b.unset[name], unsetUse{o, o.Position(pathOf(o, name)...), hint, open})
	}
}

// warnUnset warns of each variable without a value, once per cluster.
func (b *builder) warnUnset() {
	for _, name := range slices.Sorted(maps.Keys(b.unset)) {
		uses := b.unset[name]
		if len(uses) == 0 {
			continue
		}
		note := uses[max(0, slices.IndexFunc(uses, func(u unsetUse) bool { return ofFlux(u.object) }))]
		text := fmt.Sprintf("variable ${%s} has no value, and is empty", name)
		if note.open {
			text = fmt.Sprintf("variable ${%s} is not known, and is not replaced", name)
		}
		if len(uses) > 1 {
			text += fmt.Sprintf(", here and in %d more", len(uses)-1)
		}
		hint := cmp.Or(note.hint, finding.SetVariable(name)+finding.MakeError)
		b.warnAt(finding.UnsetVariable, note.object, text, hint, note.pos)
	}
}

func pathOf(o *manifest.Object, name string) []any {
	if path := o.PathOf("${" + name + "}"); path != nil {
		return path
	}
	return o.PathOf("${" + name)
}
