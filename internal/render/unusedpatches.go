package render

import (
	"path/filepath"
	"reflect"
	"slices"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

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
		text := "this patch changes nothing: no object matches its target " + use.target
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
