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

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/operator"
)

// crds contains the generated schemas. The directory written contains schemas of APIs without a Go module here. The directory
// controlplane contains schemas for the operator of Flux, limited to refusals of its API server that are certain: types, a few
// values, and required fields. These are our own, and know no other fields.
//
//go:embed crds written controlplane
var crds embed.FS

// kind holds the schema and the type of a kind.
type kind struct {
	file   string
	schema func() (*schema, error)
	typed  func() any // a new object of the controller's own type
}

// schemas holds the supported kinds. A schema is parsed for the first object of its kind, and does not change.
var schemas = map[string]kind{
	"ArtifactGenerator": kindOf[swv1.ArtifactGenerator]("crds/ArtifactGenerator"),
	"Bucket":            kindOf[sourcev1.Bucket]("crds/Bucket"),
	"ExternalArtifact":  kindOf[sourcev1.ExternalArtifact]("crds/ExternalArtifact"),
	"GitRepository":     kindOf[sourcev1.GitRepository]("crds/GitRepository"),
	"HelmChart":         kindOf[sourcev1.HelmChart]("crds/HelmChart"),
	"HelmRelease":       kindOf[helmv2.HelmRelease]("crds/HelmRelease"),
	"HelmRepository":    kindOf[sourcev1.HelmRepository]("crds/HelmRepository"),
	"ImagePolicy":       kindOf[imagev1.ImagePolicy]("crds/ImagePolicy"),
	"ImageRepository":   kindOf[imagev1.ImageRepository]("crds/ImageRepository"),
	"Kustomization":     kindOf[kustomizev1.Kustomization]("crds/Kustomization"),
	"OCIRepository":     kindOf[sourcev1.OCIRepository]("crds/OCIRepository"),
	flux1Kind:           kindOf[operator.HelmRelease]("written/" + flux1Kind),
	olderFlux1Kind:      kindOf[operator.HelmRelease]("written/" + olderFlux1Kind),
}

var operatorSchemas = map[string]kind{
	"FluxInstance":             kindOf[any]("controlplane/FluxInstance"),
	"ResourceSet":              kindOf[any]("controlplane/ResourceSet"),
	"ResourceSetInputProvider": kindOf[any]("controlplane/ResourceSetInputProvider"),
}

func kindOf[T any](name string) kind {
	k := kind{file: name + ".json", typed: func() any { return new(T) }}
	k.schema = sync.OnceValues(k.read)
	return k
}

func (k kind) read() (*schema, error) {
	data, err := crds.ReadFile(k.file)
	if err != nil {
		return nil, err
	}
	return parseSchema(data)
}

// schema is a structural schema of a CustomResourceDefinition, with the keywords in Flux's definitions. Its methods
// return the same results as the API server's code; the tests compare them.
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

// parseSchema parses a schema. It returns an error for a keyword or rule that is not supported.
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

// field returns the schema of a field of an object, nil if there is no schema for it.
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

// unknown returns the paths of the fields that the schema does not have, sorted, except those of the metadata.
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

// setDefaults sets the defaults of missing fields and of fields that are null. It removes other null fields that the schema
// knows.
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

// check returns the errors of the API server's validator, in the order of the field names.
func (s *schema) check(path *field.Path, value any) field.ErrorList {
	if s.Type == "" {
		return nil // values of a chart: the schema allows any value
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

// pathOf splits the text of a field path into steps. Keys may contain dots, or be empty: the object decides where
// a key ends.
func pathOf(v any, text string) []any {
	var path []any
	for more := text != "<nil>"; more; {
		var step any
		step, text, more = nextStep(v, text)
		path = append(path, step)
		v = manifest.ValueAt(v, []any{step})
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
