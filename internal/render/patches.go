package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/bound"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/kustomize"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// Patch is a patch that an object was built with.
type Patch struct {
	manifest.Patch
	File string // with its text
	By   string // the kustomization and its entry
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
		return yaml.Unmarshal(text, &head) == nil && head.Kind == o.Kind && similarNames(head.Metadata.Name, o)
	}
	t := p.Target
	named := bound.Whole(t.Name)(o.Name) || t.Name != "" && similarNames(t.Name, o)
	return named && bound.Whole(t.Kind)(o.Kind) && bound.Whole(t.Group)(o.Group()) && (bound.Whole(t.Namespace)(o.Namespace) || o.NoNamespace()) &&
		selects(t.LabelSelector, o, "labels") && selects(t.AnnotationSelector, o, "annotations")
}

// similarNames reports whether a name is that of an object, or was before a prefix or suffix was added.
func similarNames(name string, o *manifest.Object) bool {
	return name == o.Name || name != "" && name == o.WrittenName()
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

type patchUse struct {
	file   string // the kustomization file
	index  int
	fitted bool
	target string
	hint   string // advice if no object matches
}

type patchUses struct {
	sealed bool // objects were decrypted, so their names are not shown
	list   []patchUse
	idle   int
}

// maxIdle is the limit of patches without a matching object that are reported for one build.
const maxIdle = 100

func (u *patchUses) add(p kustomize.PatchUse) {
	use := patchUse{file: p.File, index: p.Index, fitted: p.Fitted, target: shownTarget(p.Target)}
	if !p.Fitted {
		if u.idle++; u.idle > maxIdle {
			return
		}
		if u.sealed {
			p.Near = nil
		}
		use.hint = nearTarget(p.Target, p.Near)
	}
	u.list = append(u.list, use)
}

func shownTarget(t types.Selector) string {
	name := strings.TrimPrefix(t.Namespace+"/"+t.Name, "/")
	parts := slices.DeleteFunc([]string{cmp.Or(t.Kind, t.Group), name, t.LabelSelector, t.AnnotationSelector}, func(part string) bool { return part == "" })
	return strings.Join(parts, " ")
}

func nearTarget(t types.Selector, there []resid.ResId) string {
	const otherwise = "correct the target, or remove the patch"
	var kinds, names []string
	for _, id := range there {
		kinds = append(kinds, id.Kind)
		if id.Kind == t.Kind {
			names = append(names, id.Name)
		}
	}
	if names == nil {
		if kind, ok := finding.Nearest(t.Kind, kinds); ok {
			return "did you mean " + kind + "? Else remove the patch"
		}
		return otherwise
	}
	name, ok := finding.Nearest(t.Name, names)
	switch {
	case ok && name != t.Name:
		return fmt.Sprintf("did you mean %s %s? Else remove the patch", t.Kind, name)
	case len(names) == 1:
		return fmt.Sprintf("the only %s here is %s: %s", t.Kind, names[0], otherwise)
	}
	return otherwise
}
