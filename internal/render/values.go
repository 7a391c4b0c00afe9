package render

import (
	"maps"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/conceal"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/sops"
)

// rebuilt returns a value with replaced parts. f gets each part with the parts at the same place in others. It returns the
// replacement, or false to replace parts of the part only.
func rebuilt(v any, others []any, f func(v any, others []any) (any, bool)) any {
	if other, ok := f(v, others); ok {
		return other
	}
	part := func(item, step any) any {
		at := make([]any, len(others))
		for i, other := range others {
			at[i] = manifest.ValueAt(other, []any{step})
		}
		return rebuilt(item, at, f)
	}
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, item := range v {
			m[k] = part(item, k)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = part(item, i)
		}
		return list
	}
	return v
}

// isLeaf reports whether a value has no parts.
func isLeaf(v any) bool {
	_, fields := v.(map[string]any)
	_, list := v.([]any)
	return !fields && !list
}

func hidden(v any) any {
	return rebuilt(v, nil, func(v any, _ []any) (any, bool) { return conceal.Hidden, v != nil && isLeaf(v) })
}

func copyMap(m map[string]any) map[string]any {
	c := make(map[string]any, len(m))
	maps.Copy(c, m)
	return c
}

func confide(obj *manifest.Object, content, shown map[string]any) {
	if texts := manifest.Taints(content, shown); len(texts) > 0 || obj.Tainted() {
		obj.Confide(texts, shown)
	}
}

// sealed reports whether an object may contain encrypted values. The check is cheap for most objects.
func sealed(content map[string]any) bool {
	if sops.Encrypted(content) {
		return true
	}
	if kind, _ := content["kind"].(string); kind != "Secret" {
		return false
	}
	data, _ := content["data"].(map[string]any)
	return len(data) > 0
}

func fieldOf(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}
