package values

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/strvals"
)

// Origins records which part of a release set each of its values.
type Origins struct {
	given []given // in the order in which they were merged
}

// given holds the values of one reference, or the inline values if the reference is nil.
type given struct {
	reference *Reference
	values    map[string]any
}

// Of returns the reference that set the value at a path of map keys and list indexes, nil for inline values. It is not found
// if a list or a map was merged from several references: call Of for its items.
func (o *Origins) Of(value any, path ...any) (reference *Reference, found bool) {
	for i := len(o.given) - 1; i >= 0; i-- {
		if v, ok := at(o.given[i].values, path); ok && reflect.DeepEqual(v, value) {
			return o.given[i].reference, true
		}
	}
	return nil, false
}

// References returns the references of the release, in the order in which they are merged.
func (o *Origins) References() []*Reference {
	var list []*Reference
	for _, g := range o.given {
		if g.reference != nil {
			list = append(list, g.reference)
		}
	}
	return list
}

// Secret reports whether any of the values comes from a Secret.
func (o *Origins) Secret() bool {
	return slices.ContainsFunc(o.References(), func(r *Reference) bool { return r.Kind == kindSecret })
}

// OfSecret reports whether the value at a path may come from a Secret: a Secret set it, or it was merged from several
// references of which at least one is a Secret.
func (o *Origins) OfSecret(value any, path ...any) bool {
	reference, found := o.Of(value, path...)
	return !found && o.Secret() || reference != nil && reference.Kind == kindSecret
}

// Confidential returns the values that come from Secrets as texts, without true and false.
func (o *Origins) Confidential(composed map[string]any) []string {
	if !o.Secret() {
		return nil
	}
	var texts []string
	var collect func(value any, path []any)
	collect = func(value any, path []any) {
		switch v := value.(type) {
		case map[string]any:
			for key, part := range v {
				collect(part, append(path, key))
			}
		case []any:
			for i, part := range v {
				collect(part, append(path, i))
			}
		case nil, bool:
		default:
			if !o.OfSecret(v, path...) {
				return
			}
			if text, ok := v.(string); ok {
				texts = append(texts, text)
			} else if text, err := json.Marshal(v); err == nil {
				texts = append(texts, string(text))
			}
		}
	}
	collect(composed, nil)
	slices.Sort(texts)
	return texts
}

func at(v any, path []any) (any, bool) {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			ok := false
			if v, ok = m[step]; !ok {
				return nil, false
			}
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil, false
			}
			v = list[step]
		}
	}
	return v, true
}

// note records the values of a reference. A value with a target path is set into an empty map, if that does not fail.
func (o *Origins) note(r *Reference, values map[string]any, set func(into map[string]any) error) {
	if set != nil {
		values = map[string]any{}
		if set(values) != nil {
			return
		}
	}
	o.given = append(o.given, given{r, values})
}

// setter returns a function that sets a value at the target path of a reference: by the rules of Helm's --set, of
// --set-string if it is in quotes, or literally.
func setter(r Reference, value string) func(into map[string]any) error {
	expression := r.TargetPath + "=" + value
	if r.Literal {
		if strings.Contains(r.TargetPath, `\`) {
			return func(into map[string]any) error { return setLiterally(r.TargetPath, value, into) }
		}
		return func(into map[string]any) error { return strvals.ParseLiteralInto(expression, into) }
	}
	if text, quoted := unquoted(value); quoted {
		return func(into map[string]any) error { return strvals.ParseIntoString(r.TargetPath+"="+text, into) }
	}
	return func(into map[string]any) error { return strvals.ParseInto(expression, into) }
}

// placeholder stands for a literal value while its path is parsed. No value of a ConfigMap or Secret contains a NUL.
const placeholder = "\x00helmsrc\x00"

// setLiterally sets a value at a path with escaped dots, which Helm's parser of literal values takes for separators. It
// parses the path by the rules of --set, and does not parse the value.
func setLiterally(path, value string, into map[string]any) error {
	return strvals.ParseIntoFile(path+"="+placeholder, into, func(text []rune) (any, error) {
		return strings.ReplaceAll(string(text), placeholder, value), nil
	})
}
