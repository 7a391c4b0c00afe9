package render

import (
	"fmt"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

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

// nameOf returns the name of a Kustomization in the field Built of its objects, "" for an object of another kind.
func nameOf(o *manifest.Object) string {
	if o.Group() != manifest.KustomizeGroup || o.Kind != "Kustomization" {
		return ""
	}
	return "Kustomization " + o.Namespace + "/" + o.Name
}
