package render

import (
	"slices"
	"strings"
)

// show finds the fields that values of Secrets reached in the build of a Kustomization, or of a directory without one.
func (b *builder) show(f *flux, c *closure, replace, shown map[string][]byte) {
	f.seen = f.visible()
	if f.seen == f && !c.carries() && len(shown) == 0 {
		return
	}
	f.objects = b.showing(c, f.objects, func(v *veil) ([]built, error) {
		file, k, err := f.seen.kustomization(newClosure())
		if err != nil {
			return nil, err
		}
		return f.repo.buildUnder(b.ctx, v, nil, f.path, file, k, replace)
	}, shown)
}

// showing sets the forms of a build's objects that may be shown. again runs the build with a veil.
func (b *builder) showing(c *closure, objects []built, again func(*veil) ([]built, error), shown map[string][]byte) []built {
	objects = slices.Clone(objects) // another cluster may share them
	for _, o := range objects {
		if o.content["kind"] == "Secret" {
			b.o.Secrets.AddData(bytesOf(dataOf(o.content)))
		}
	}
	veiled, err := again(newVeil(c, shown))
	for i := range objects {
		o := &objects[i]
		if err != nil || len(veiled) != len(objects) || veiled[i].content["kind"] != o.content["kind"] {
			o.shown = allHidden(o.content)
			continue
		}
		o.shown, _ = unhashed(o.content, veiled[i].content).(map[string]any)
	}
	return objects
}

func bytesOf(values map[string]string) map[string][]byte {
	m := make(map[string][]byte, len(values))
	for k, v := range values {
		m[k] = []byte(v)
	}
	return m
}

// allHidden returns an object with everything hidden except its type, name and namespace.
func allHidden(content map[string]any) map[string]any {
	m, _ := hidden(content).(map[string]any)
	meta, _ := m["metadata"].(map[string]any)
	m["apiVersion"], m["kind"] = content["apiVersion"], content["kind"]
	given, _ := content["metadata"].(map[string]any)
	for _, field := range []string{"name", "namespace"} {
		if v, ok := given[field]; ok {
			meta[field] = v
		}
	}
	return m
}

// unhashed restores names in the veiled object that end in the hash of a Secret: the hash does not reveal its values.
func unhashed(content, veiled any) any {
	return rebuilt(veiled, []any{content}, func(v any, at []any) (any, bool) {
		veiled, _ := v.(string)
		text, _ := at[0].(string)
		name := max(0, len(veiled)-hashLength)
		return text, name > 0 && len(text) == len(veiled) && text[:name] == veiled[:name] && isHash(text[name:]) && isHash(veiled[name:])
	})
}

const hashLength = 11

func isHash(text string) bool {
	return text[0] == '-' && strings.Trim(text[1:], "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}
