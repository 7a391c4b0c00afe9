package render

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// Unset selects the treatment of a variable without a value.
type Unset int

const (
	// UnsetDecides makes it empty, as Flux does, with a warning; it is an error in a field that decides about downloads or names.
	UnsetDecides Unset = iota
	// UnsetFails makes it an error everywhere.
	UnsetFails
	// UnsetEmpty makes it empty everywhere, as Flux does.
	UnsetEmpty
)

// deciding lists the fields that determine downloads, names and references: chart, version, URL and so on. The last key of
// a path counts, except below a key in free.
var deciding = map[string]bool{
	"chart": true, "version": true, "url": true, "image": true,
	"apiVersion": true, "kind": true, "name": true, "namespace": true, "key": true, "valuesKey": true, "serviceAccountName": true,
	"releaseName": true, "targetNamespace": true, "storageNamespace": true, "namePrefix": true, "nameSuffix": true,
	"branch": true, "tag": true, "semver": true, "semverFilter": true, "commit": true, "digest": true, "range": true, "pattern": true,
	"bucketName": true, "endpoint": true, "region": true, "prefix": true, "path": true, "fromPath": true, "toPath": true,
	"valuesFile": true, "valuesFiles": true, "sparseCheckout": true, "components": true,
}

var free = map[string]bool{
	"values": true, "postRenderers": true, "patches": true, "commonMetadata": true, "labels": true, "annotations": true,
	"substitute": true, "data": true, "stringData": true, "status": true,
}

// withoutValues substitutes a text with variables that have no value. If the cluster may know them, they stay as they are written;
// otherwise they are empty, as in the cluster. A variable in a deciding field is an error.
func (v *variables) withoutValues(ctx context.Context, content map[string]any, text string) (*substituted, string, error) {
	if err := v.decidedObject(ctx, content); err != nil && !(v.open && v.tolerant) {
		return nil, "", err
	}
	s := &substituted{}
	known := *v
	known.values = maps.Clone(v.values)
	out, used, err := known.text(ctx, text)
	for unset := new(unsetError); len(s.unset) < maxUnset && errors.As(err, &unset); {
		s.unset = append(s.unset, unset.name)
		if known.values[unset.name] = ""; v.open {
			known.values[unset.name] = "${" + unset.name + "}"
		}
		out, used, err = known.text(ctx, text)
	}
	slices.Sort(s.unset)
	s.open = v.open && len(s.unset) > 0
	s.used = slices.DeleteFunc(used, func(name string) bool { return slices.Contains(s.unset, name) })
	return s, out, err
}

// decidedObject returns the error of the first variable without a value in a deciding field. For an object that is not Flux's,
// only its type and metadata count.
func (v *variables) decidedObject(ctx context.Context, content map[string]any) error {
	apiVersion, _, _, _ := manifest.Identify(content)
	group, _, _ := strings.Cut(apiVersion, "/")
	if !isFluxGroup(group) {
		content = map[string]any{"apiVersion": content["apiVersion"], "kind": content["kind"], "metadata": content["metadata"]}
	}
	for path, value := range manifest.Leaves(content, free) {
		text, _ := value.(string)
		if !strings.Contains(text, "$") || !deciding[lastKey(path)] {
			continue
		}
		if _, _, err := v.text(ctx, text); err != nil {
			if unset, ok := errors.AsType[*unsetError](err); ok {
				unset.path = path
			}
			return err
		}
	}
	return nil
}

func lastKey(path []any) string {
	for _, step := range slices.Backward(path) {
		if key, ok := step.(string); ok {
			return key
		}
	}
	return ""
}

type unsetUse struct {
	object *manifest.Object
	pos    manifest.Pos
	hint   string
	open   bool // it stays as it is written
}

func (b *builder) noteUnset(o *manifest.Object, names []string, hint string, open bool) {
	if o.ReferenceOnly {
		return
	}
	for _, name := range names {
		b.unset[name] = append(b.unset[name], unsetUse{o, o.Position(pathOf(o, name)...), hint, open})
	}
}

func pathOf(o *manifest.Object, name string) []any {
	if path := o.PathOf("${" + name + "}"); path != nil {
		return path
	}
	return o.PathOf("${" + name)
}

func ofFlux(o *manifest.Object) bool { return isFluxGroup(o.Group()) }

func isFluxGroup(group string) bool {
	return strings.HasSuffix(group, "toolkit.fluxcd.io") || manifest.IsFlux1(group)
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
			text = fmt.Sprintf("variable ${%s} is not known here, and stays as it is written", name)
		}
		if len(uses) > 1 {
			text += fmt.Sprintf(", here and in %d more", len(uses)-1)
		}
		hint := cmp.Or(note.hint, finding.SetVariable(name)+finding.MakeError)
		b.warnAt(finding.UnsetVariable, note.object, text, hint, note.pos)
	}
}
