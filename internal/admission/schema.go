package admission

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// crds has the generated schemas, and in written those of APIs that are no module here.
//
//go:embed crds written
var crds embed.FS

// schemas are read when an object of their kind is seen. Nothing here changes otherwise.
var schemas = map[string]func() (*schema, error){
	"ArtifactGenerator": lazySchema("ArtifactGenerator"),
	"Bucket":            lazySchema("Bucket"),
	"ExternalArtifact":  lazySchema("ExternalArtifact"),
	"GitRepository":     lazySchema("GitRepository"),
	"HelmChart":         lazySchema("HelmChart"),
	"HelmRelease":       lazySchema("HelmRelease"),
	"HelmRepository":    lazySchema("HelmRepository"),
	"ImagePolicy":       lazySchema("ImagePolicy"),
	"ImageRepository":   lazySchema("ImageRepository"),
	"Kustomization":     lazySchema("Kustomization"),
	"OCIRepository":     lazySchema("OCIRepository"),
	flux1Kind:           lazySchema(flux1Kind),
	olderFlux1Kind:      lazySchema(olderFlux1Kind),
}

func lazySchema(kind string) func() (*schema, error) {
	return sync.OnceValues(func() (*schema, error) { return readSchema(kind) })
}

func schemaOf(kind string) (*schema, error) {
	s, ok := schemas[kind]
	if !ok {
		return nil, fmt.Errorf("no such kind")
	}
	return s()
}

func readSchema(kind string) (*schema, error) {
	data, err := crds.ReadFile(schemaFile(kind))
	if err != nil {
		return nil, err
	}
	return parseSchema(data)
}

func schemaFile(kind string) string {
	if strings.Contains(kind, ".") {
		return "written/" + kind + ".json"
	}
	return "crds/" + kind + ".json"
}

// schema is a structural schema of a CustomResourceDefinition, with the keywords that Flux's definitions have. Its methods
// answer as the API server's own code does; the tests compare them.
type schema struct {
	Type                 string
	Properties           map[string]*schema
	AdditionalProperties *schema
	Required             []string
	Items                *schema
	Enum                 []string
	Pattern              string
	MinLength, MaxLength *int
	MinItems, MaxItems   *int
	PreserveUnknown      bool            `json:"x-kubernetes-preserve-unknown-fields"`
	Default              json.RawMessage `json:"default"`
	Rules                []rule          `json:"x-kubernetes-validations"`
	Comment              string          `json:"$comment"`

	pattern  func() *regexp.Regexp
	defaults map[string]any // of properties
}

// parseSchema reads a schema. The error names a keyword or a rule that is not supported.
func parseSchema(data []byte) (*schema, error) {
	s := new(schema)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return nil, err
	}
	return s, s.prepare()
}

func (s *schema) prepare() error {
	if s == nil {
		return nil
	}
	if s.Pattern != "" { // most are never needed
		s.pattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(s.Pattern) })
	}
	for i := range s.Rules {
		if err := s.Rules[i].prepare(); err != nil {
			return err
		}
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

// field is the schema of a field of an object, nil if there is no schema for it.
func (s *schema) field(name string) *schema {
	if s == nil {
		return nil
	}
	if p := s.Properties[name]; p != nil {
		return p
	}
	return s.AdditionalProperties
}

func (s *schema) items() *schema {
	if s == nil {
		return nil
	}
	return s.Items
}

func (s *schema) at(path []any) *schema {
	for _, step := range path {
		if name, ok := step.(string); ok {
			s = s.field(name)
		} else {
			s = s.items()
		}
	}
	if s == nil {
		return &schema{}
	}
	return s
}

func (s *schema) names() []string { return slices.Sorted(maps.Keys(s.Properties)) }

// unknown lists the paths of the fields that the schema does not have, sorted. The metadata are not among them.
func (s *schema) unknown(object map[string]any) []string {
	var paths []string
	for name, value := range object {
		switch name {
		case "apiVersion", "kind", "metadata":
			continue
		}
		paths = s.unknownField(paths, name, name, value)
	}
	slices.Sort(paths)
	return paths
}

func (s *schema) unknownField(paths []string, path, name string, value any) []string {
	if f := s.field(name); f != nil {
		return f.unknownBelow(paths, path, value)
	}
	if s != nil && s.PreserveUnknown {
		return paths
	}
	return append(paths, path)
}

func (s *schema) unknownBelow(paths []string, path string, value any) []string {
	switch v := value.(type) {
	case map[string]any:
		for name, e := range v {
			paths = s.unknownField(paths, path+"."+name, name, e)
		}
	case []any:
		items := s.items()
		if items == nil && s != nil && s.PreserveUnknown {
			return paths
		}
		for i, e := range v {
			paths = items.unknownBelow(paths, path+"["+strconv.Itoa(i)+"]", e)
		}
	}
	return paths
}

// setDefaults adds the fields that are missing or null and have a default, and removes other nulls where the schema has a
// type for the value.
func (s *schema) setDefaults(value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, e := range v {
			if f := s.field(name); e == nil && f != nil {
				delete(v, name)
			}
		}
		for name, d := range s.defaults {
			if _, ok := v[name]; !ok {
				v[name] = runtime.DeepCopyJSONValue(d)
			}
		}
		for name, e := range v {
			if f := s.field(name); f != nil {
				f.setDefaults(e)
			}
		}
	case []any:
		if s.Items == nil {
			return
		}
		for _, e := range v {
			s.Items.setDefaults(e)
		}
	}
}

// check returns the errors of the API server's validator of values, in the order of the fields' names.
func (s *schema) check(path *field.Path, value any) field.ErrorList {
	if s.Type == "" {
		return nil // values of a chart: the schema allows any
	}
	var errs field.ErrorList
	if name := jsonType(value); name != s.Type && (s.Type != "integer" || !isWhole(value)) {
		errs = append(errs, field.TypeInvalid(path, name, fmt.Sprintf("%s in body must be of type %s: %q", path, s.Type, name)))
		if s.Type == "integer" && name == "number" {
			errs = append(errs, field.Invalid(nil, "", fmt.Sprintf("Checked value must be of type integer (default format) in %s", path)))
		}
	}
	if text, isText := value.(string); len(s.Enum) > 0 && !(isText && slices.Contains(s.Enum, text)) {
		errs = append(errs, field.NotSupported(path, value, s.Enum))
	}
	switch v := value.(type) {
	case map[string]any:
		errs = append(errs, s.checkFields(path, v)...)
	case []any:
		errs = append(errs, s.checkItems(path, v)...)
	case string:
		if err := s.checkText(path, v); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func (s *schema) checkFields(path *field.Path, fields map[string]any) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if f := s.field(name); f != nil {
			errs = append(errs, f.check(path.Child(name), fields[name])...)
		}
	}
	for _, name := range s.Required {
		if _, ok := fields[name]; !ok {
			errs = append(errs, field.Required(path.Child(name), ""))
		}
	}
	return errs
}

func (s *schema) checkItems(path *field.Path, list []any) field.ErrorList {
	var errs field.ErrorList
	if s.Items != nil {
		for i, e := range list {
			errs = append(errs, s.Items.check(path.Index(i), e)...)
		}
	}
	if s.MinItems != nil && len(list) < *s.MinItems {
		errs = append(errs, field.Invalid(path, int64(len(list)), fmt.Sprintf("%s in body should have at least %d items", path, *s.MinItems)))
	}
	if s.MaxItems != nil && len(list) > *s.MaxItems {
		errs = append(errs, field.TooMany(path, len(list), *s.MaxItems))
	}
	return errs
}

func (s *schema) checkText(path *field.Path, text string) *field.Error {
	switch {
	case s.MaxLength != nil && utf8.RuneCountInString(text) > *s.MaxLength:
		return field.TooLong(path, "", *s.MaxLength)
	case s.MinLength != nil && utf8.RuneCountInString(text) < *s.MinLength:
		return field.Invalid(path, text, fmt.Sprintf("%s in body should be at least %d chars long", path, *s.MinLength))
	case s.pattern != nil && !s.pattern().MatchString(text):
		return field.Invalid(path, text, fmt.Sprintf("%s in body should match '%s'", path, s.Pattern))
	}
	return nil
}

// maxWhole is the largest integer that every JSON reader keeps exactly: 2^53 - 1.
const maxWhole = 1<<53 - 1

func isWhole(value any) bool {
	f, ok := value.(float64)
	return ok && f == math.Trunc(f) && math.Abs(f) <= maxWhole
}

// pathOf turns the text of a field path into steps. Keys may contain dots, or be empty, so the object that the path is of
// decides where a key ends.
func pathOf(v any, text string) []any {
	var path []any
	for more := text != "<nil>"; more; {
		var step any
		step, text, more = nextStep(v, text)
		path = append(path, step)
		v = child(v, step)
	}
	return path
}

func nextStep(v any, text string) (step any, rest string, more bool) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		name, rest, _ := strings.Cut(inner, "]")
		step = name
		if i, err := strconv.Atoi(name); err == nil {
			step = i
		}
		return step, strings.TrimPrefix(rest, "."), rest != ""
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
	rest = text[len(key):]
	return key, strings.TrimPrefix(rest, "."), rest != ""
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
