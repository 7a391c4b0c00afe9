package render

import (
	"fmt"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/bound"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/kustomize"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// Result is the result of the build of a cluster.
type Result struct {
	*manifest.Build
	Notices    []Notice
	Rejections []Rejection        // Kustomizations that the API server would refuse
	Judged     []*manifest.Object // Kustomizations, kustomization files and ResourceSets, whose comments are read
	Expansions []Expansion        // of generators with a pathPattern
	Incomplete bool               // a part of it is elsewhere, so that missing objects may exist

	Here []Source // this repository, by the sources that a cluster begins with and no file defines

	// Files are the files of the input's repositories that the builds read, as messages name them.
	Files []string

	// CheckoutOf returns the root of the repository of a HelmRelease of Flux 1 if its chart is in there, "" otherwise.
	CheckoutOf func(release *manifest.Object) string

	patches  []*notedPatch // that may have had no effect
	used     map[Source]bool
	trees    map[Source]string
	closures []*closure
	// kustomizations are the checked ones, and those that were built only for references to their objects.
	kustomizations []*manifest.Object
}

// Expansion is an artifact of a generator with a pathPattern, whose source is available.
type Expansion struct {
	Generator *manifest.Object
	Index     int // of the entry in spec.artifacts
	Name      string
	Labels    map[string]string // of the captures
}

// Used reports whether a source replaced that of a Kustomization.
func (r *Result) Used(s Source) bool { return r.used[s] }

// TreeOf returns the directory with the files of a source that Kustomizations are built from, "" if it is not certain.
func (r *Result) TreeOf(kind, namespace, name string) string {
	return r.trees[Source{Kind: kind, Namespace: namespace, Name: name}]
}

// Patch is a patch that an object was built with.
type Patch struct {
	manifest.Patch
	File string // with its text
	By   string // the kustomization and its entry
}

// Patches lists the patches whose targets match an object, in the order in which kustomizations are met. A listed patch need not
// have changed the object.
func (r *Result) Patches(o *manifest.Object) []Patch {
	var list []Patch
	if o.Built == "" {
		return nil
	}
	seen := map[Patch]bool{}
	add := func(p Patch) {
		if !seen[p] {
			seen[p] = true
			list = append(list, p)
		}
	}
	file, err := absolute(o.Pos.File)
	if err != nil {
		return nil
	}
	for _, c := range r.closures {
		if !c.files[file] {
			continue
		}
		for _, d := range c.dirs {
			d.patchesOf(o, file, add)
		}
	}
	for _, k := range r.kustomizations {
		if name := nameOf(k); name == "" || name != o.Built {
			continue
		}
		for i, entry := range manifest.At[[]any](k.Content, "spec", "patches") {
			var p types.Patch
			if text, err := yaml.Marshal(entry); err == nil && yaml.Unmarshal(text, &p) == nil && fits(p, []byte(p.Patch), o) {
				add(Patch{manifest.Patch{Text: p.Patch, In: k}, k.Pos.File, fmt.Sprintf("%s spec.patches[%d]", o.Built, i)})
			}
		}
	}
	return list
}

// tracePatches lets objects find the patches that they were built with, to locate mistakes.
func (r *Result) tracePatches() {
	texts := func(o *manifest.Object) []manifest.Patch {
		var list []manifest.Patch
		for _, p := range r.Patches(o) {
			list = append(list, p.Patch)
		}
		return list
	}
	for _, o := range r.Objects {
		o.PatchedBy(texts)
	}
	for _, rejected := range r.Rejections {
		rejected.Object.PatchedBy(texts)
	}
}

// patchesOf adds the patches of a directory that match an object, if the file of the object is below it.
func (d *directory) patchesOf(o *manifest.Object, file string, add func(Patch)) {
	if d.kustomization == nil || d.err != nil || len(d.kustomization.Patches) == 0 {
		return
	}
	own := newClosure()
	_ = own.add(d.repo, d.path, nil) // it was built
	if !own.files[file] && d.kustomization.Kind != types.ComponentKind {
		return
	}
	for i, p := range d.kustomization.Patches {
		found := Patch{manifest.Patch{In: d.object}, d.repo.display(d.file), fmt.Sprintf("%s patches[%d]", d.repo.display(d.file), i)}
		text := []byte(p.Patch)
		if p.Path != "" {
			real, err := d.repo.within(join(d.path, p.Path))
			if err != nil {
				continue
			}
			if text, err = d.repo.read(real); err != nil {
				continue
			}
			found.File = d.repo.display(real)
			found.In = manifest.FirstDocument(found.File, text)
		}
		if found.Text = string(text); fits(p, text, o) {
			add(found)
		}
	}
}

// fits reports whether a patch matches an object: by its target, or by the object that a strategic merge patch names.
func fits(p types.Patch, text []byte, o *manifest.Object) bool {
	if p.Target == nil {
		var head struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		return yaml.Unmarshal(text, &head) == nil && head.Kind == o.Kind && alikeNames(head.Metadata.Name, o)
	}
	t := p.Target
	named := whole(t.Name, o.Name) || t.Name != "" && alikeNames(t.Name, o)
	return named && whole(t.Kind, o.Kind) && whole(t.Group, o.Group()) && (whole(t.Namespace, o.Namespace) || o.NoNamespace()) &&
		selects(t.LabelSelector, o, "labels") && selects(t.AnnotationSelector, o, "annotations")
}

// alikeNames reports whether a name is that of an object, or was before a prefix or suffix was added.
func alikeNames(name string, o *manifest.Object) bool {
	return name == o.Name || name != "" && name == o.WrittenName()
}

func whole(expression, text string) bool {
	if expression == "" {
		return true
	}
	re, err := bound.Compile("^(?:" + expression + ")$")
	if err != nil {
		return false
	}
	found, err := re.Match(text)
	return found && err == nil
}

func selects(selector string, o *manifest.Object, field string) bool {
	if selector == "" {
		return true
	}
	s, err := labels.Parse(selector)
	if err != nil {
		return false
	}
	set := labels.Set{}
	for name, v := range manifest.At[map[string]any](o.Content, "metadata", field) {
		set[name], _ = v.(string)
	}
	return s.Matches(set)
}

// nameOf returns the name of a Kustomization in the field Built of its objects, "" for an object of another kind.
func nameOf(o *manifest.Object) string {
	if o.Group() != manifest.KustomizeGroup || o.Kind != "Kustomization" {
		return ""
	}
	return "Kustomization " + o.Namespace + "/" + o.Name
}

// Build builds the directories of the input that belong to the cluster.
func (c *Cluster) Build() (result *Result) {
	b := c.builder()
	c.r.arrived = newArrivals()
	// After a panic, here or in a library, the findings in plain files are still reported.
	defer func() {
		if p := recover(); p != nil {
			b.notice(Notice{Text: string(debug.Stack()), Debug: true})
			b.errs = append(b.errs, &buildError{err: &kustomize.PanicError{Value: p}})
			result = b.result(&manifest.Build{Errors: b.errs})
		}
	}()
	b.run()
	return b.result(b.build())
}

func (b *builder) run() {
	if b.plan == nil {
		b.expandGenerators()
		return
	}
	if b.plan.idle {
		return
	}
	for _, s := range b.cluster.starts {
		b.start(s)
	}
	b.finishAll()
	b.rest()
	b.reportGenerators()
	b.warnAbsent()
	b.warnDependencies()
	if b.loose() {
		alone := b.looseStarts()
		b.errs, b.notices = append(b.errs, alone.errs...), append(b.notices, alone.notices...)
		b.rejections, b.judged = append(b.rejections, alone.rejections...), append(b.judged, alone.judged...)
	}
}

func (b *builder) known() *manifest.Build {
	claimed, foreign, unapplied := map[*manifest.File]bool{}, map[*manifest.File]bool{}, map[*manifest.File]bool{}
	for path, f := range b.byPath {
		if b.cluster.foreign(path) {
			foreign[f], claimed[f] = true, true
		}
		unapplied[f] = b.hidden(path)
		if b.claimed[path] && !b.spared[path] || unapplied[f] {
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

func (b *builder) build() *manifest.Build {
	build := b.known()
	for path := range b.claimed {
		b.reached[path] = true
	}
	if b.in.Kustomized() {
		b.warnNamespaces(build.Claimed)
	}
	for _, f := range b.in.Files {
		if build.Claimed[f] {
			continue
		}
		for _, o := range f.Objects() {
			if names := b.unsetOf[o]; len(names) > 0 && !f.ReferenceOnly() {
				b.noteUnset(o, names, "", false)
			}
		}
	}
	build.Errors = b.errs
	return build
}

func (b *builder) result(build *manifest.Build) *Result {
	b.warnUnset()
	judged := slices.DeleteFunc(slices.Clone(b.judged), func(o *manifest.Object) bool { return o.ReferenceOnly })
	notices := slices.Concat(b.notices, b.Renderer.notices)
	result := &Result{Build: build, Notices: notices, Rejections: b.rejections, Judged: judged, Incomplete: len(b.partial) > 0, Expansions: b.expansions, Here: b.here, Files: b.filesRead(), CheckoutOf: b.checkoutOf, patches: b.patched, used: b.used, trees: b.trees, closures: b.closures, kustomizations: b.judged}
	result.tracePatches()
	return result
}

func (b *builder) filesRead() []string {
	read := map[string]bool{}
	for _, dir := range slices.Sorted(maps.Keys(b.named)) {
		root, known := file.Repository(dir)
		if !known {
			root = dir
		}
		for path := range b.claimed {
			if inside(root, path) && !inside(filepath.Join(root, ".git"), path) {
				read[b.display(path)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(read))
}
