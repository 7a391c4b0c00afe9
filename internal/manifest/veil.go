package manifest

import (
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/conceal"
)

// StoredAs returns the namespace and name of an object in the artifacts directory. Each is a pseudonym if a part of
// it came from a Secret.
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

// MayBeStoredAs reports whether an object with this name in a record can have the name stored in the artifacts directory.
func MayBeStoredAs(name, stored string) bool {
	return stored == name || strings.Contains(name, conceal.Hidden) && strings.HasPrefix(stored, conceal.Hidden+"-")
}

// Veil returns the visible name of a file or a revision: a pseudonym if the name was made from a text of a Secret in
// the chart or the version of the object. The part after an @ is kept.
func (o *Object) Veil(name string) string { return o.VeilOf(name, namingFields()...) }

// VeilOf is Veil for a text that is made from the given fields.
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

// VeilField is Veil and ConcealText for a text of a document or a table that contains the chart or the version.
func (o *Object) VeilField(text string) string { return o.ConcealText(o.Veil(text)) }

// Unveil returns the name for which Veil returned a pseudonym, if a field of the object contains that name.
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

// namingFields returns the fields from which revisions and the names of artifacts are made.
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

// At returns the value at a path of fields and list indexes, or the zero value if it is missing or of another type.
func At[T any](v any, path ...any) T {
	value, _ := ValueAt(v, path).(T)
	return value
}

// ValueAt returns the value at a path like At, of any type.
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

// VeilStatus applies Veil to the revisions and file names of a status.
func (o *Object) VeilStatus(status map[string]any) map[string]any {
	if !o.Tainted() {
		return status
	}
	veiled, _ := withNames(status, o.Veil).(map[string]any)
	if chart, ok := veiled["helmChart"].(string); ok {
		veiled["helmChart"] = o.calledIn(chart) // the name of the chart is derived from that of the release
	}
	return veiled
}

// UnveilStatus applies Unveil to the same fields.
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
