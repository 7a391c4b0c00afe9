package render

import (
	"context"
	"maps"
	"slices"
	"strings"

	sigsyaml "sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/conceal"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/sops"
)

func shownPatch(before, after []byte) []byte {
	var b, a any
	if sigsyaml.Unmarshal(before, &b) != nil || sigsyaml.Unmarshal(after, &a) != nil {
		return []byte(conceal.Hidden) // not a patch: all that it changes is hidden
	}
	text, err := sigsyaml.Marshal(unsealed(b, a, a))
	if err != nil {
		return []byte(conceal.Hidden)
	}
	return text
}

func visibleOf(o built) map[string]any {
	if o.shown != nil {
		return o.shown
	}
	return o.content
}

func confide(obj *manifest.Object, content, shown map[string]any) {
	if texts := manifest.Taints(content, shown); len(texts) > 0 || obj.Tainted() {
		obj.Confide(texts, shown)
	}
}

// shown substitutes the variables in an object for display, without values from Secrets. The arguments are the object, and the
// part of it that may be shown before the substitution.
func (v *variables) shown(ctx context.Context, content, shown map[string]any) map[string]any {
	if !v.substitutes() {
		return shown
	}
	public := &variables{values: maps.Clone(v.values), secret: v.secret, unset: v.unset, always: v.always, open: v.open, tolerant: true, budget: v.budget}
	for name := range v.secret {
		if v.secret[name] {
			public.values[name] = conceal.Hidden
		}
	}
	s, err := public.object(ctx, shown)
	if err != nil {
		// An expression fails on the hidden value: hide all texts with variables. Keys are shown as they are written.
		hidden, _ := unexpanded(content, shown).(map[string]any)
		return hidden
	}
	return s.content
}

// given returns the values, among the used variables, that the command line sets.
func (r *Renderer) given(used []string) []string {
	var list []string
	for _, name := range used {
		if value := r.o.Variables[name]; value != "" {
			list = append(list, value)
		}
	}
	return list
}

func (v *variables) hides(used []string) bool {
	return slices.ContainsFunc(used, func(name string) bool { return v.secret[name] })
}

// unexpanded returns the object for display without texts that contain variables.
func unexpanded(content, shown any) any {
	return rebuilt(content, []any{shown}, func(v any, at []any) (any, bool) {
		text, _ := v.(string)
		list, isList := v.([]any)
		same, _ := at[0].([]any)
		if strings.Contains(text, "$") || isList && len(same) != len(list) {
			return conceal.Hidden, true
		}
		return at[0], isLeaf(v)
	})
}

// openFile opens the objects of a file that is not built, once in a run.
func (r *Renderer) openFile(f *manifest.File) {
	sealed := f.Mentions("ENC[")
	for _, o := range f.Objects() {
		switch {
		case o.Group() == manifest.KustomizeGroup:
		case r.plain != nil, o.Kind == "Secret", sealed:
			r.open(o)
		}
	}
}

// open decrypts an object in a file, and substitutes the variables of the command line. It returns nil if neither changes
// the object.
func (r *Renderer) open(o *manifest.Object) *manifest.Opened {
	if opened, ok := r.opened[o]; ok {
		return &opened
	}
	if r.plain == nil && o.Content != nil && !sops.Encrypted(o.Content) {
		return nil
	}
	raw, err := o.Raw()
	if err != nil {
		return nil // an error where the object is used
	}
	content, err := r.openRaw(raw)
	if err == nil && r.plain == nil && !sealed(raw.Value) {
		return nil
	}
	opened := manifest.Opened{Content: content, Err: err}
	r.opened[o] = opened
	return &opened
}

func (r *Renderer) openRaw(o *manifest.Raw) (map[string]any, error) {
	content, shown := o.Value, o.Shown(o.Value)
	if sealed(content) {
		opened, err := r.decrypter().raw(o)
		if err != nil {
			return nil, err
		}
		content, shown = opened, withoutSecrets(o.Value, opened, opened)
	}
	s, err := r.substitutePlain(o.Object, content, shown)
	if err != nil {
		return nil, err
	}
	r.unsetOf[o.Object] = s.unset
	return s.content, nil
}

// substitutePlain substitutes the variables of the command line in an object, and records the part that may be shown. shown is
// that part before the substitution.
func (r *Renderer) substitutePlain(obj *manifest.Object, content, shown map[string]any) (*substituted, error) {
	confide(obj, content, shown)
	s, err := r.plain.object(r.ctx, content)
	if err != nil {
		return nil, err
	}
	obj.Mute(r.given(s.used), s.content)
	if obj.Tainted() {
		confide(obj, s.content, r.plain.shown(r.ctx, content, shown))
	}
	return s, nil
}
