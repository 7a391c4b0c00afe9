package render

import (
	"cmp"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/kustomize"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// maxIdle is the limit of patches without a matching object that are reported for one build.
const maxIdle = 100

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

// patchKey identifies an entry of patches, in a kustomization file or a Kustomization. An entry that another object added may have
// another target.
type patchKey struct {
	at     string
	index  int
	target string
}

// notedPatch is a patch with its effect in all builds of the run.
type notedPatch struct {
	fitted bool
	notice Notice
}

// notePatches records the effect of the patches of a build. o is the Kustomization that is built, or nil.
func (b *builder) notePatches(r *repository, o *manifest.Object, uses []patchUse) {
	for _, use := range uses {
		object, path, index := o, []any{"spec", "patches"}, use.index
		if d := r.directory(filepath.Dir(use.file)); d != nil && use.index < len(d.kustomization.Patches) {
			object, path = d.object, d.fieldOf("patches", use.index)
		} else {
			if d != nil {
				index -= len(d.kustomization.Patches)
			}
			if path = append(path, index); o == nil || !use.fitted && !sameTarget(o, index) {
				continue
			}
		}
		key := patchKey{object.Pos.String(), index, use.target}
		noted := b.patchNotes[key]
		if noted == nil {
			noted = &notedPatch{}
			b.patchNotes[key] = noted
		}
		if noted.fitted = noted.fitted || use.fitted; noted.fitted || !b.seesAll(object, r, use) {
			continue
		}
		text := "this patch changes nothing: no object fits its target " + use.target
		noted.notice = Notice{Code: finding.IdlePatch, Object: object, Excerpt: object.Excerpt(append(path, "target")...), Text: text, Hint: use.hint}
		b.patched = append(b.patched, noted)
	}
}

// sameTarget reports whether a patch is written in the Kustomization itself. A patch that another Kustomization adds is often
// meant for all of its objects, whether they match or not.
func sameTarget(o *manifest.Object, index int) bool {
	raw, err := o.Raw()
	if err != nil {
		return false
	}
	target := []any{"spec", "patches", index, "target"}
	return reflect.DeepEqual(manifest.ValueAt(raw.Value, target), manifest.ValueAt(o.Content, target))
}

// seesAll reports whether the run includes every build that uses a patch: any directory may include a component.
func (b *builder) seesAll(o *manifest.Object, r *repository, use patchUse) bool {
	d := r.directory(filepath.Dir(use.file))
	if o.ReferenceOnly || d == nil || d.kustomization.Kind != types.ComponentKind {
		return !o.ReferenceOnly
	}
	return b.passed == nil && slices.ContainsFunc(b.in.Roots, func(root string) bool {
		real, err := absolute(root)
		return err == nil && inside(real, d.file)
	})
}

// WarnPatches reports the patches that changed nothing, once all clusters were built.
func (r *Result) WarnPatches() {
	for _, p := range r.patches {
		if !p.fitted && !slices.Contains(r.Notices, p.notice) {
			r.Notices = append(r.Notices, p.notice)
		}
	}
}
