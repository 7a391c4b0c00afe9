package admission

import (
	"strconv"
	"strings"
)

// pathOf turns the text of a field path into steps. Keys may hold dots, so the object that the path is of decides where
// a key ends.
func pathOf(v any, text string) []any {
	var path []any
	for text != "" && text != "<nil>" {
		var step any
		step, text = nextStep(v, text)
		path = append(path, step)
		v = child(v, step)
	}
	return path
}

func nextStep(v any, text string) (step any, rest string) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		name, rest, _ := strings.Cut(inner, "]")
		rest = strings.TrimPrefix(rest, ".")
		if i, err := strconv.Atoi(name); err == nil {
			return i, rest
		}
		return name, rest
	}
	key := text
	if i := strings.IndexAny(text, ".["); i > 0 {
		key = text[:i]
	}
	m, _ := v.(map[string]any)
	for k := range m {
		if len(k) > len(key) && strings.HasPrefix(text, k) && endsStep(text[len(k):]) {
			key = k
		}
	}
	return key, strings.TrimPrefix(text[len(key):], ".")
}

func endsStep(rest string) bool { return rest == "" || rest[0] == '.' || rest[0] == '[' }

func child(v, step any) any {
	switch step := step.(type) {
	case string:
		m, _ := v.(map[string]any)
		return m[step]
	case int:
		if l, ok := v.([]any); ok && step >= 0 && step < len(l) {
			return l[step]
		}
	}
	return nil
}
