package render

import (
	"encoding/base64"
	"errors"

	"github.com/helmsrc/helmsrc/internal/manifest"
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
