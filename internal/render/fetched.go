package render

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// needs returns the missing sources of Kustomizations and generators.
func (b *builder) needs() []Need {
	var list []Need
	add := func(n Need) {
		if i := slices.IndexFunc(list, func(other Need) bool { return other.Source == n.Source }); i >= 0 {
			list[i].Generator = list[i].Generator || n.Generator
			return
		}
		list = append(list, n)
	}
	for _, p := range b.parked {
		if p.need != nil {
			add(*p.need)
		}
	}
	for _, g := range b.artifactGenerators() {
		if g.ReferenceOnly {
			continue
		}
		for _, s := range b.outputOf(g, b.sources, nil).lacks {
			add(Need{s, true})
		}
	}
	return slices.DeleteFunc(list, func(n Need) bool { return b.arrived.asked[n] || b.arrived.lost[n.Source] })
}

// fetch requests the trees of the needed sources that fit, and reports whether there are any.
func (b *builder) fetch(fits func(Need) bool) bool {
	if b.o.Fetch == nil {
		return false
	}
	needs := slices.DeleteFunc(b.needs(), func(n Need) bool { return !fits(n) })
	if len(needs) == 0 {
		return false
	}
	for _, n := range needs {
		b.arrived.asked[n] = true
		b.arrived.asked[Need{Source: n.Source}] = true
	}
	for _, s := range b.o.Fetch(b.cluster, needs, b.known()) {
		if s.Dir == "" {
			b.arrived.lost[s] = true
			continue
		}
		b.arrived.trees = append(b.arrived.trees, s)
		if real, err := absolute(s.Dir); err == nil {
			b.shown[real] = filepath.FromSlash(s.shownAs())
		}
	}
	clear(b.made)
	return true
}

func (b *builder) known() *manifest.Build {
	claimed, foreign, unapplied := map[*manifest.File]bool{}, map[*manifest.File]bool{}, map[*manifest.File]bool{}
	for path, f := range b.byPath {
		if b.cluster.foreign(path) {
			foreign[f], claimed[f] = true, true
		}
		unapplied[f] = b.hidden(path)
		if b.claimed[path] && !b.readAsWritten[path] || unapplied[f] {
			claimed[f] = true
		}
	}
	for _, f := range b.in.Files {
		if !claimed[f] {
			b.openFile(f)
		}
	}
	for _, f := range b.in.Beside() {
		b.openFile(f)
	}
	return &manifest.Build{Claimed: claimed, Foreign: foreign, Unapplied: unapplied, Objects: b.objects, Errors: b.errs, Made: b.copies, Unknown: b.silenced, Opened: b.opened}
}

// sourceOfNeed returns the source whose tree is needed, nil if it is not defined.
func (b *builder) sourceOfNeed(n Need) *manifest.Object {
	key := datumKey(n.Kind, n.Namespace, n.Name)
	if source := b.sources[key]; source != nil {
		return source
	}
	for _, p := range b.index.sources[key] {
		if !b.taken(p.path) {
			return p.object
		}
	}
	return nil
}

func (b *builder) defined(n Need) bool {
	return b.sourceOfNeed(n) != nil
}

func (b *builder) certain(n Need) bool {
	source := b.sourceOfNeed(n)
	if source == nil || !b.hasSecrets(source.Namespace, source.Content["spec"]) {
		return false
	}
	if n.Kind != "HelmChart" {
		return true
	}
	ref := func(field string) string { return manifest.At[string](source.Content, "spec", "sourceRef", field) }
	return b.certain(Need{Source: Source{Kind: ref("kind"), Namespace: source.Namespace, Name: ref("name")}})
}

func (b *builder) hasSecrets(namespace string, v any) bool {
	fields, _ := v.(map[string]any)
	for name, v := range fields {
		field, _ := v.(map[string]any)
		secret := manifest.At[string](field, "name")
		if strings.HasSuffix(strings.ToLower(name), "secretref") && secret != "" && b.lookup("Secret", namespace, secret) == nil || !b.hasSecrets(namespace, v) {
			return false
		}
	}
	return true
}
