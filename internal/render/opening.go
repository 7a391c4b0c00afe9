package render

import (
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/sops"
)

// openFile makes the objects of a file ready as they lie there, once in a run.
func (r *Renderer) openFile(f *manifest.File) {
	for _, o := range f.Objects() {
		switch {
		case o.Group() == manifest.KustomizeGroup:
		case r.plain != nil, o.Kind == "Secret", f.Mentions("ENC["):
			r.open(o)
		}
	}
}

// open decrypts an object as it lies in a file, and substitutes the variables of the command line. It returns nil if there
// is nothing to do.
func (r *Renderer) open(o *manifest.Object) *manifest.Opened {
	if opened, ok := r.opened[o]; ok {
		return &opened
	}
	if r.plain == nil && o.Content != nil && !sops.Encrypted(o.Content) {
		return nil
	}
	raw, err := o.Raw()
	if err != nil {
		return nil // which is an error when it is asked for
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
	content := o.Value
	if sealed(content) {
		d := r.decrypter()
		opened, err := d.raw(o)
		if err != nil {
			return nil, err
		}
		content = opened
		confide(o.Object, content, withoutSecrets(o.Value, opened, opened))
	}
	if r.plain == nil {
		return content, nil
	}
	s, err := r.plain.object(r.ctx, content)
	if err != nil {
		return nil, err
	}
	r.unsetOf[o.Object] = s.unset
	o.Mute(r.given(s.used), s.content)
	if o.Tainted() {
		confide(o.Object, s.content, r.plain.shown(r.ctx, content, o.Shown(content)))
	}
	return s.content, nil
}
