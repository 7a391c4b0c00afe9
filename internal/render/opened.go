package render

import (
	"fmt"
	"net/url"
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

// minTransformed is the length from which on what became of a secret is one: shorter texts are everywhere.
const minTransformed = 4

// transformed adds to the values of Secrets what expressions and URLs make of them: strings of an object that are not
// shown and hold none of the values as they are.
func transformed(texts []string, content, shown any) []string {
	texts = slices.DeleteFunc(texts, func(text string) bool { return text == "" })
	for _, text := range slices.Clone(texts) {
		if escaped := url.PathEscape(text); escaped != text {
			texts = append(texts, escaped)
		}
	}
	return transformedIn(texts, content, shown)
}

func transformedIn(texts []string, content, shown any) []string {
	switch c := content.(type) {
	case map[string]any:
		s, _ := shown.(map[string]any)
		for _, k := range sortedKeys(c) {
			if other, there := s[k]; there {
				texts = transformedIn(texts, c[k], other)
			}
		}
	case []any:
		s, _ := shown.([]any)
		for i := range min(len(c), len(s)) {
			texts = transformedIn(texts, c[i], s[i])
		}
	case string:
		plain := func(text string) bool { return strings.Contains(c, text) }
		if len(texts) > 0 && len(c) >= minTransformed && c != shown && !slices.ContainsFunc(texts, plain) {
			texts = append(texts, c)
		}
	}
	return texts
}
