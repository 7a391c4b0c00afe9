package render

import (
	"fmt"
	"slices"
	"strings"

	sigsyaml "sigs.k8s.io/yaml"
)

// openedIn adds the values that are encrypted in one text and are not in the other.
func openedIn(opened []any, before, after []byte) []any {
	var b, a any
	if sigsyaml.Unmarshal(before, &b) != nil || sigsyaml.Unmarshal(after, &a) != nil {
		return opened
	}
	return differing(opened, b, a)
}

func differing(opened []any, before, after any) []any {
	switch after := after.(type) {
	case map[string]any:
		b, _ := before.(map[string]any)
		for _, k := range sortedKeys(after) {
			opened = differing(opened, b[k], after[k])
		}
	case []any:
		b, _ := before.([]any)
		for i := range min(len(b), len(after)) {
			opened = differing(opened, b[i], after[i])
		}
	default:
		if text, ok := before.(string); ok && strings.HasPrefix(text, "ENC[") {
			opened = append(opened, after)
		}
	}
	return opened
}

// secretsOf lists the strings of an object that were decrypted elsewhere, and the object without them. It is nil if there
// are none.
func secretsOf(content map[string]any, opened []any) (texts []string, shown map[string]any) {
	if len(opened) == 0 {
		return nil, nil
	}
	found := false
	m, _ := redactedIn(content, opened, &texts, &found).(map[string]any)
	if !found {
		return nil, nil
	}
	return texts, m
}

func redactedIn(v any, opened []any, texts *[]string, found *bool) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, item := range v {
			m[k] = redactedIn(item, opened, texts, found)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = redactedIn(item, opened, texts, found)
		}
		return list
	}
	if !slices.ContainsFunc(opened, func(o any) bool { return fmt.Sprint(o) == fmt.Sprint(v) }) {
		return v
	}
	*found = true
	if text, ok := v.(string); ok {
		*texts = append(*texts, text)
	}
	return "REDACTED"
}
