package admission

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"sync"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	kubejson "k8s.io/apimachinery/pkg/util/json"
)

// A shape is a schema in a form that is quick to read and to compare with. It recognises what the API server certainly
// takes, and adds the defaults to it: that is nearly every object. Only of the others has the API server's own code to
// say what is wrong; it makes a validator of its own for each value of each object.
type shape struct {
	Type                 string
	Properties           map[string]*shape
	AdditionalProperties *shape
	Required             []string
	Items                *shape
	Enum                 []string
	Pattern              string
	MinLength, MaxLength *int
	MinItems, MaxItems   *int
	PreserveUnknown      bool            `json:"x-kubernetes-preserve-unknown-fields"`
	Default              json.RawMessage `json:"default"`
	Rules                json.RawMessage `json:"x-kubernetes-validations"`
	Comment              string          `json:"$comment"`

	pattern  func() *regexp.Regexp
	rules    []string       // in CEL
	defaults map[string]any // of properties
}

// shapeOf reads a schema. The error names a keyword that shapes do not support.
func shapeOf(schema []byte) (*shape, error) {
	s := new(shape)
	d := json.NewDecoder(bytes.NewReader(schema))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return nil, err
	}
	return s, s.prepare()
}

func (s *shape) prepare() error {
	if s == nil {
		return nil
	}
	if s.Pattern != "" { // most are never needed
		s.pattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(s.Pattern) })
	}
	if err := s.prepareRules(); err != nil {
		return err
	}
	for name, p := range s.Properties {
		if err := p.prepare(); err != nil {
			return err
		}
		if p.Default == nil {
			continue
		}
		var value any
		if err := kubejson.Unmarshal(p.Default, &value); err != nil {
			return err
		}
		if s.defaults == nil {
			s.defaults = map[string]any{}
		}
		s.defaults[name] = value
	}
	if err := s.AdditionalProperties.prepare(); err != nil {
		return err
	}
	return s.Items.prepare()
}

func (s *shape) prepareRules() error {
	if s.Rules == nil {
		return nil
	}
	var rules []struct{ Rule string }
	if err := json.Unmarshal(s.Rules, &rules); err != nil {
		return err
	}
	for _, r := range rules {
		s.rules = append(s.rules, r.Rule)
	}
	return nil
}

// field is the shape of a field of an object, nil if the schema says nothing of it.
func (s *shape) field(name string) *shape {
	if p := s.Properties[name]; p != nil {
		return p
	}
	return s.AdditionalProperties
}

// at is the shape of a field at a path, an empty one if there is none.
func (s *shape) at(path []any) *shape {
	for _, step := range path {
		next := s.Items
		if name, ok := step.(string); ok {
			next = s.field(name)
		}
		if next == nil {
			return &shape{}
		}
		s = next
	}
	return s
}

// names lists the fields that an object can have.
func (s *shape) names() []string { return slices.Sorted(maps.Keys(s.Properties)) }

// knows is false if there is a field in the object that the schema does not know. Metadata are not looked at.
func (s *shape) knows(object map[string]any) bool {
	for name, value := range object {
		switch name {
		case "apiVersion", "kind", "metadata":
			continue
		}
		if field := s.field(name); field == nil || !field.knowsAll(value) {
			return false
		}
	}
	return true
}

func (s *shape) knowsAll(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for name, e := range v {
			field := s.field(name)
			if field == nil && s.PreserveUnknown {
				continue
			}
			if field == nil || !field.knowsAll(e) {
				return false
			}
		}
	case []any:
		items := s.Items
		if items == nil { // a list in the place of something else
			items = &shape{PreserveUnknown: s.PreserveUnknown}
		}
		return !slices.ContainsFunc(v, func(e any) bool { return !items.knowsAll(e) })
	}
	return true
}

// setDefaults adds the fields that are not there and have a default. There must be no nulls, which are another matter.
func (s *shape) setDefaults(value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, d := range s.defaults {
			if _, ok := v[name]; !ok {
				v[name] = runtime.DeepCopyJSONValue(d)
			}
		}
		for name, e := range v {
			if field := s.field(name); field != nil {
				field.setDefaults(e)
			}
		}
	case []any:
		for _, e := range v {
			if s.Items != nil {
				s.Items.setDefaults(e)
			}
		}
	}
}

// hasNull reports whether there is a null anywhere in a value.
func hasNull(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, e := range v {
			if hasNull(e) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasNull)
	}
	return false
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
		return s.Type == "array" && (s.MinItems == nil || len(v) >= *s.MinItems) && (s.MaxItems == nil || len(v) <= *s.MaxItems) &&
			(s.Items == nil || !slices.ContainsFunc(v, func(e any) bool { return !s.Items.accepts(e) }))
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
		if field := s.field(name); field != nil && !field.accepts(value) {
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
