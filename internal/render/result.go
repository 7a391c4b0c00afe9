package render

import (
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"

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

func (c *Cluster) builder() *builder {
	clear(c.r.made)
	return &builder{
		Renderer: c.r, cluster: c, kustomizations: map[string]*manifest.Object{},
		claimed: map[string]bool{}, spared: map[string]bool{}, abandoned: map[*node]bool{}, superseded: map[int]bool{}, revisions: map[int]int{}, startOf: map[*manifest.Object]int{}, withdrawn: map[string]int{}, lostPaths: map[string]bool{},
		found: map[string]*datum{}, generated: map[string]string{}, sources: sources{}, unset: map[string][]unsetUse{}, used: map[Source]bool{}, trees: map[Source]string{},
	}
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

// taken reports whether a file does not count as a plain file: it is built, belongs to another cluster, or is not applied.
func (b *builder) taken(path string) bool {
	return b.claimed[path] || b.cluster.foreign(path) || b.plan != nil && !b.plan.live(path)
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
