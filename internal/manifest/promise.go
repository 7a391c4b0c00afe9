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

// A Maker is an object of which a controller in the cluster makes a Secret in the same namespace.
type Maker struct {
	Object *Object
	Secret string
}

// Makers lists the objects of a file of which Secrets are made.
func (f *File) Makers() []Maker {
	if f.batch == nil {
		return nil
	}
	var list []Maker
	for _, p := range f.batch.promises {
		list = append(list, Maker{p.by, p.secret})
	}
	return list
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
	for _, set := range append([]*Set{s}, s.others()...) {
		if o := set.promises[k]; o != nil {
			return o
		}
	}
	return nil
}
