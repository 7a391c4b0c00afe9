package render

import (
	"encoding/base64"
	"errors"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/sops"
)

// lookup finds a ConfigMap or Secret among the built objects, then among the plain files.
func (b *builder) lookup(kind, namespace, name string) *datum {
	key := datumKey(kind, namespace, name)
	if d, ok := b.found[key]; ok {
		return d
	}
	for _, p := range b.index.data[key] {
		if !b.taken(p.path) {
			d := b.plainDatum(p.object)
			b.found[key] = d
			return d
		}
	}
	return nil
}

func (b *builder) plainDatum(o *manifest.Object) *datum {
	if opened := b.open(o); opened != nil {
		if opened.Err != nil {
			return sealedDatum(opened.Err)
		}
		return datumOf(opened.Content, o.Shown(opened.Content))
	}
	raw, err := o.Raw()
	if err != nil {
		return &datum{sealed: err.Error()}
	}
	return datumOf(raw.Value, raw.Value)
}

// complete reports whether the ConfigMaps and Secrets of a Kustomization are known. It checks optional ones on demand only.
func (b *builder) complete(f *flux, optional bool) bool {
	if f.spec.PostBuild == nil {
		return true
	}
	for _, ref := range f.spec.PostBuild.SubstituteFrom {
		if ref.Optional && !optional {
			continue
		}
		if b.lookup(ref.Kind, f.object.Namespace, ref.Name) == nil {
			return false
		}
	}
	return true
}

// variablesOf returns the variables for the objects of a Kustomization, nil if it has no post build.
func (b *builder) variablesOf(f *flux) *variables {
	post := f.spec.PostBuild
	if post == nil {
		return nil
	}
	v := newVariables(b.o.Unset, b.budget)
	v.always = post.SubstituteStrategy == kustomizev1.SubstituteStrategy("Always")
	for i, ref := range post.SubstituteFrom {
		d := b.lookup(ref.Kind, f.object.Namespace, ref.Name)
		if d != nil && d.sealed == "" {
			v.set(d.values, func(name string) bool { return d.secret[name] })
			b.o.Secrets.AddData(d.hidden())
			continue
		}
		if d == nil && ref.Optional {
			continue
		}
		missing := b.missing(f, ref, d)
		// In a cluster it may exist. A variable without a value is reported where it is used.
		v.always, v.open, v.tolerant = true, true, b.o.Tolerant
		v.hint = missing.hint
		b.absent = append(b.absent, absence{f, i, d})
	}
	v.set(post.Substitute, f.hides)
	v.set(b.o.Variables, public)
	return v
}

func (f *flux) hides(name string) bool {
	post := f.seen.spec.PostBuild
	return f.seen != f && (post == nil || post.Substitute[name] != f.spec.PostBuild.Substitute[name])
}

// keysOf returns the keys for the objects of a Kustomization: the keys in its Secret, and those of the user.
func (b *builder) keysOf(f *flux) *decrypter {
	d := b.decrypter()
	if b.fromFetched(f) {
		d.keys, d.hint = &sops.Keys{}, finding.KeysNotFollowed
	}
	spec := f.spec.Decryption
	if spec == nil || spec.SecretRef == nil {
		return d
	}
	secret := b.lookup("Secret", f.object.Namespace, spec.SecretRef.Name)
	if secret == nil {
		return d
	}
	data := map[string][]byte{}
	for k, v := range secret.values {
		data[k] = []byte(v)
	}
	keys := &sops.Keys{}
	if err := addSecret(keys, f.object.Namespace+"/"+spec.SecretRef.Name, data); err != nil {
		b.warn(finding.UnusableKeys, f.object, err.Error(), "", "spec", "decryption", "secretRef")
	}
	d.keys = d.keys.With(keys)
	return d
}

// fromFetched reports whether a Kustomization, or any source that it is built from, was fetched. The user's own keys do not
// decrypt it: a remote source could make them decrypt files of the checkout, and send the values to an address of its choice.
func (b *builder) fromFetched(f *flux) bool {
	var used []Source
	if f.source != nil {
		used = append(used, *f.source)
	}
	if f.made != nil {
		used = append(used, f.made.used...)
	}
	return b.fetchedFile(f.object.Pos.File) || slices.ContainsFunc(used, func(s Source) bool { return slices.Contains(b.arrived.trees, s) })
}

// decrypted decrypts an object of a Kustomization, if spec.decryption is set.
func (b *builder) decrypted(f *flux, content map[string]any) (map[string]any, error) {
	if f.spec.Decryption != nil {
		if !sealed(content) {
			return content, nil
		}
		return b.keysOf(f).object(content)
	}
	if sops.Encrypted(content) && content["kind"] == "Secret" {
		return nil, &manifest.SealedError{Reason: f.name() + " has no spec.decryption, without which the cluster refuses it"}
	}
	return content, nil
}

// borrow looks for the variables of a Kustomization among the objects of all waiting Kustomizations, including its own: in
// a cluster they would exist at the next reconcile.
func (b *builder) borrow(f *flux) {
	if f.spec.PostBuild == nil {
		return
	}
	for _, ref := range f.spec.PostBuild.SubstituteFrom {
		if b.lookup(ref.Kind, f.object.Namespace, ref.Name) != nil {
			continue
		}
		for _, other := range append([]*flux{f}, b.waiting...) {
			for _, o := range other.objects {
				_, kind, namespace, name := manifest.Identify(o.content)
				if kind != ref.Kind || name != ref.Name || namespace != f.object.Namespace {
					continue
				}
				d := b.builtDatum(other, o)
				d.built = other.name()
				b.found[datumKey(kind, namespace, name)] = d
			}
		}
	}
}

func (b *builder) builtDatum(f *flux, o built) *datum {
	opened, err := b.decrypted(f, o.content)
	if err != nil {
		return sealedDatum(err)
	}
	return datumOf(opened, withoutSecrets(o.content, opened, visibleOf(o)))
}

func (d *datum) hidden() map[string][]byte {
	values := map[string][]byte{}
	for k, v := range d.values {
		if d.secret[k] {
			values[k] = []byte(v)
		}
	}
	return values
}

func sealedDatum(err error) *datum {
	if sealed, ok := errors.AsType[*manifest.SealedError](err); ok {
		return &datum{sealed: sealed.Reason, inCluster: true}
	}
	return &datum{sealed: err.Error()}
}

// datumOf reads a ConfigMap or Secret. It hides all values of a Secret, and the values of a ConfigMap that came from a Secret.
func datumOf(content, shown map[string]any) *datum {
	d := &datum{values: dataOf(content), secret: map[string]bool{}}
	secret, visible := content["kind"] == "Secret", dataOf(shown)
	if secret {
		d.kind, _ = content["type"].(string)
	}
	for k, value := range d.values {
		d.secret[k] = secret || visible[k] != value
	}
	return d
}

func dataOf(content map[string]any) map[string]string {
	found := map[string]string{}
	for _, field := range []string{"data", "stringData"} {
		values, _ := content[field].(map[string]any)
		for k, v := range values {
			text, ok := v.(string)
			if ok && field == "data" && content["kind"] == "Secret" {
				plain, err := base64.StdEncoding.DecodeString(text)
				text, ok = string(plain), err == nil
			}
			if ok {
				found[k] = text
			}
		}
	}
	return found
}
