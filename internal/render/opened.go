package render

import (
	"context"
	"maps"
	"strings"

	sigsyaml "sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/conceal"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// shownPatch is a decrypted patch without what was encrypted in it.
func shownPatch(before, after []byte) []byte {
	var b, a any
	if sigsyaml.Unmarshal(before, &b) != nil || sigsyaml.Unmarshal(after, &a) != nil {
		return []byte(conceal.Hidden) // which is no patch: nothing of what it changes is shown
	}
	text, err := sigsyaml.Marshal(unsealed(b, a, a))
	if err != nil {
		return []byte(conceal.Hidden)
	}
	return text
}

func visibleOf(o built) map[string]any {
	if o.shown != nil {
		return o.shown
	}
	return o.content
}

func confide(obj *manifest.Object, content, shown map[string]any) {
	if texts := manifest.Taints(content, shown); len(texts) > 0 || obj.Tainted() {
		obj.Confide(texts, shown)
	}
}

// shown substitutes an object for people: without what comes from Secrets. Given are the object, and what may be shown of
// it before the substitution.
func (v *variables) shown(ctx context.Context, content, shown map[string]any) map[string]any {
	if !v.substitutes() {
		return shown
	}
	public := &variables{values: maps.Clone(v.values), secret: v.secret, unset: v.unset, always: v.always, open: v.open, tolerant: true, budget: v.budget}
	for name := range v.secret {
		if v.secret[name] {
			public.values[name] = conceal.Hidden
		}
	}
	s, err := public.object(ctx, shown)
	if err != nil {
		// An expression cannot take it: no field with a variable is shown.
		hidden, _ := unexpanded(content, shown).(map[string]any)
		return hidden
	}
	return s.content
}

// given are the values of the command line among the variables that were used.
func (r *Renderer) given(used []string) []string {
	var list []string
	for _, name := range used {
		if value := r.o.Variables[name]; value != "" {
			list = append(list, value)
		}
	}
	return list
}

func (v *variables) hides(used []string) bool {
	for _, name := range used {
		if v.secret[name] {
			return true
		}
	}
	return false
}

func unexpanded(v, shown any) any {
	switch v := v.(type) {
	case map[string]any:
		s, _ := shown.(map[string]any)
		m := make(map[string]any, len(v))
		for k, item := range v {
			if !strings.Contains(k, "$") {
				m[k] = unexpanded(item, s[k])
			}
		}
		return m
	case []any:
		s, _ := shown.([]any)
		list := make([]any, len(v))
		for i, item := range v {
			if list[i] = any(conceal.Hidden); len(s) == len(v) {
				list[i] = unexpanded(item, s[i])
			}
		}
		return list
	case string:
		if strings.Contains(v, "$") {
			return conceal.Hidden
		}
	}
	return shown
}
