package manifest

import (
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/conceal"
)

// StoredAs is how an object is called in the artifacts directory. A part of its name that came from a Secret is another
// one there.
func (o *Object) StoredAs() (namespace, name string) {
	_, namespace, name = o.Called()
	if namespace != o.Namespace {
		namespace = conceal.Pseudonym(o.Namespace)
	}
	if name != o.Name {
		name = conceal.Pseudonym(o.Name)
	}
	return namespace, name
}

// MayBeStoredAs reports whether an object that a record calls name can be called stored in the artifacts directory.
func MayBeStoredAs(name, stored string) bool {
	return stored == name || strings.Contains(name, conceal.Hidden) && strings.HasPrefix(stored, conceal.Hidden+"-")
}

// Veil is what the name of a file or a revision is called where people see it: one that was made of what a Secret says
// about the chart or the version of the object is another name. What follows an @ stays.
func (o *Object) Veil(name string) string { return o.VeilOf(name, namingFields()...) }

// VeilOf is Veil for a text that is made of these fields.
func (o *Object) VeilOf(name string, fields ...[]any) string {
	if !o.Tainted() {
		return name
	}
	first, _, _ := strings.Cut(name, "@")
	if strings.HasPrefix(first, conceal.Hidden) || !conceal.MadeOf(first, o.taintsOf(fields)) {
		return name
	}
	return conceal.Pseudonym(first) + strings.TrimPrefix(name, first)
}

// VeilField is VeilOf and ConcealText for a text of a document or a table, that says what the chart or the version is.
func (o *Object) VeilField(text string) string { return o.ConcealText(o.Veil(text)) }

// Unveil finds out of which name Veil has made another, if a field of the object has it as it is.
func (o *Object) Unveil(name string) string {
	first, _, _ := strings.Cut(name, "@")
	if !o.Tainted() || !strings.HasPrefix(first, conceal.Hidden) {
		return name
	}
	for _, text := range o.taintsOf(namingFields()) {
		if conceal.Pseudonym(text) == first {
			return text + strings.TrimPrefix(name, first)
		}
	}
	return name
}

// namingFields are the fields of which revisions and the names of artifacts are made.
func namingFields() [][]any {
	return [][]any{
		{"spec", "chart"}, {"spec", "version"}, {"spec", "ref"}, {"spec", "reference"}, {"spec", "valuesFiles"}, {"spec", "valuesFile"},
	}
}

func (o *Object) taintsOf(fields [][]any) []string {
	var texts []string
	for _, path := range fields {
		field := ValueAt(o.Content, path)
		if field == nil {
			continue
		}
		if o.shown != nil {
			texts = append(texts, Taints(field, ValueAt(o.shown, path))...)
			continue
		}
		texts = append(texts, within(field, o.confidential)...)
	}
	return texts
}

func within(field any, texts []string) []string {
	var found []string
	_ = conceal.Mapped(field, func(text string) string {
		for _, t := range texts {
			if conceal.MadeOf(text, []string{t}) && !slices.Contains(found, t) {
				found = append(found, t)
			}
		}
		return text
	})
	return found
}

// At is the value at a path of fields and positions in a list, the zero value if it is not there or of another type.
func At[T any](v any, path ...any) T {
	value, _ := ValueAt(v, path).(T)
	return value
}

// ValueAt is At for a value of any type.
func ValueAt(v any, path []any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case int:
			list, _ := v.([]any)
			if step < 0 || step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

// VeilStatus does what Veil does to the fields of a status with such names.
func (o *Object) VeilStatus(status map[string]any) map[string]any {
	if !o.Tainted() {
		return status
	}
	veiled, _ := withNames(status, o.Veil).(map[string]any)
	if chart, ok := veiled["helmChart"].(string); ok {
		veiled["helmChart"] = o.calledIn(chart) // its name is made of the release's
	}
	return veiled
}

// UnveilStatus does what Unveil does to them.
func (o *Object) UnveilStatus(status map[string]any) map[string]any {
	known, _ := withNames(status, o.Unveil).(map[string]any)
	return known
}

func withNames(status any, replace func(string) string) any {
	return conceal.Fields(status, func(key, text string) string {
		switch key {
		case "revision", "lastAttemptedRevision", "lastAppliedRevision", "observedChartName", "observedSourceArtifactRevision", "observedValuesFiles[]":
			return replace(text)
		}
		return text
	})
}
