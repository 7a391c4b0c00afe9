package render

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/bound"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

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
