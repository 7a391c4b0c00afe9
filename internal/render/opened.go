package render

import (
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/sops"
)

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

// decrypter returns a decrypter with the keys of the user, except for untrusted manifests.
func (r *Renderer) decrypter() *decrypter {
	d := &decrypter{keys: r.ambient()}
	if r.o.Untrusted {
		d.hint = finding.KeysLeftOut
	}
	return d
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
