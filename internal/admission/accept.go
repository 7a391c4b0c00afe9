package admission

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"sync"
	"unicode/utf8"
)

// A shape accepts values that a schema certainly allows, many times faster than the API server's validator, which makes
// a validator of its own for each value. Nearly all objects are valid; of the others the validator says what is wrong.
type shape struct {
	Type                 string
	Properties           map[string]*shape
	AdditionalProperties *shape
	Required             []string
	Items                *shape
	Enum                 []string
	Pattern              string
	MinLength, MaxLength *int

	// These need no look at the values here: defaults are set before, rules are checked after.
	Comment         string          `json:"$comment"`
	Default         json.RawMessage `json:"default"`
	Rules           json.RawMessage `json:"x-kubernetes-validations"`
	PreserveUnknown bool            `json:"x-kubernetes-preserve-unknown-fields"`

	pattern func() *regexp.Regexp
}

// shapeOf reads a schema. The error tells of a keyword that shapes do not know.
func shapeOf(schema []byte) (*shape, error) {
	s := new(shape)
	d := json.NewDecoder(bytes.NewReader(schema))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return nil, err
	}
	s.prepare()
	return s, nil
}

// prepare has patterns compiled when they are first needed: most never are.
func (s *shape) prepare() {
	if s == nil {
		return
	}
	if s.Pattern != "" {
		s.pattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(s.Pattern) })
	}
	for _, p := range s.Properties {
		p.prepare()
	}
	s.AdditionalProperties.prepare()
	s.Items.prepare()
}

// accepts is true only of values that the schema allows; false says nothing.
func (s *shape) accepts(value any) bool {
	if s.Type == "" && s.PreserveUnknown {
		return true // values of a chart: the schema says no more of them
	}
	switch v := value.(type) {
	case map[string]any:
		return s.Type == "object" && s.acceptsFields(v)
	case []any:
		return s.Type == "array" && (s.Items == nil || !slices.ContainsFunc(v, func(item any) bool { return !s.Items.accepts(item) }))
	case string:
		return s.Type == "string" && s.acceptsText(v)
	case bool:
		return s.Type == "boolean" && s.Enum == nil
	case int64:
		return s.Type == "integer" && s.Enum == nil
	}
	return false
}


func (s *shape) acceptsFields(fields map[string]any) bool {
	for _, name := range s.Required {
		if _, ok := fields[name]; !ok {
			return false
		}
	}
	for name, value := range fields {
		field := s.Properties[name]
		if field == nil {
			field = s.AdditionalProperties
		}
		if field != nil && !field.accepts(value) {
			return false
		}
	}
	return s.Enum == nil
}

func (s *shape) acceptsText(text string) bool {
	return (s.Enum == nil || slices.Contains(s.Enum, text)) &&
		(s.MinLength == nil || utf8.RuneCountInString(text) >= *s.MinLength) &&
		(s.MaxLength == nil || utf8.RuneCountInString(text) <= *s.MaxLength) &&
		(s.pattern == nil || s.pattern().MatchString(text))
}
