package manifest

import "cmp"

// promise is a Secret that something in the cluster makes of an object.
type promise struct {
	by     *Object
	secret string
}

// promised is the name of the Secret that a controller in the cluster makes of an object, "" for none. The Secret is
// in the object's namespace.
func promised(o *Object, field func(path ...string) string) string {
	switch (groupKind{o.Group(), o.Kind}) {
	case groupKind{"bitnami.com", "SealedSecret"}:
		return cmp.Or(field("spec", "template", "metadata", "name"), o.Name)
	case groupKind{"external-secrets.io", "ExternalSecret"}:
		return cmp.Or(field("spec", "target", "name"), o.Name)
	case groupKind{"cert-manager.io", "Certificate"}:
		return field("spec", "secretName")
	}
	return ""
}

// Promised is the name of the Secret that a controller in the cluster makes of an object that was built, "" for none.
func Promised(content map[string]any) string {
	field := fieldOf(content)
	return promised(&Object{APIVersion: field("apiVersion"), Kind: field("kind"), Name: field("metadata", "name")}, field)
}

// Maker is the object of a file of which a controller in the cluster makes a Secret, nil for none.
func (f *File) Maker(namespace, secret string) *Object {
	if f.batch == nil {
		return nil
	}
	for _, p := range f.batch.promises {
		if p.secret == secret && p.by.Namespace == namespace {
			return p.by
		}
	}
	return nil
}

// promise remembers what an object of another kind will make.
func (s *Set) promise(o *Object, name string) {
	if s.promises == nil {
		s.promises = map[key]*Object{}
	}
	s.promises[key{"", "Secret", o.Namespace, name}] = o
}

// fieldOf reads texts of an object that was built.
func fieldOf(content map[string]any) func(path ...string) string {
	return func(path ...string) string {
		var v any = content
		for _, step := range path {
			m, _ := v.(map[string]any)
			v = m[step]
		}
		text, _ := v.(string)
		return text
	}
}

// maker is what makes a Secret in the cluster that is nowhere else, nil for nothing that is known.
func (s *Set) maker(k key) *Object {
	for _, set := range []*Set{s, s.siblings, s.surroundings} {
		if o := set.promises[k]; o != nil {
			return o
		}
	}
	return nil
}
