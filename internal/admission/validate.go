package admission

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// decode decodes a request as the API server does: it checks unknown fields and the types of the metadata, drops nulls and sets
// defaults. The order is the API server's.
func (r *review) decode() error {
	metadata, unknown, err := r.metadata()
	if err != nil {
		return r.badRequest("", []Cause{r.metadataCause(err)})
	}
	if unknown = slices.Concat(unknown, r.schema.unknown(r.content), r.younger()); len(unknown) > 0 {
		return r.badRequest("strict decoding error: ", r.unknownFields(unknown))
	}
	if r.content["metadata"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(metadata); err != nil {
		return r.badRequest("", []Cause{r.metadataCause(err)})
	}
	dropNulls(r.content["metadata"])
	r.schema.setDefaults(r.content)
	return nil
}

// metadata decodes the object's metadata, and returns the paths of its unknown fields.
func (r *review) metadata() (*metav1.ObjectMeta, []string, error) {
	data, err := kubejson.Marshal(r.content["metadata"])
	if err != nil {
		return nil, nil, err
	}
	metadata := new(metav1.ObjectMeta)
	strict, err := kjson.UnmarshalStrict(data, metadata)
	var unknown []string
	for _, e := range strict {
		if f, ok := errors.AsType[kjson.FieldError](e); ok {
			unknown = append(unknown, "metadata."+f.FieldPath())
		}
	}
	return metadata, unknown, err
}

// metadataCause returns the cause for the field of the metadata that has a wrong type. It decodes them one by one.
func (r *review) metadataCause(err error) Cause {
	c := Cause{Code: finding.InvalidMetadata, Path: []any{"metadata"}, Field: "metadata", Message: err.Error(), Pos: r.obj.Position("metadata")}
	metadata, _ := r.content["metadata"].(map[string]any)
	for name, v := range metadata {
		data, err := kubejson.Marshal(map[string]any{name: v})
		if err == nil {
			err = kubejson.Unmarshal(data, new(metav1.ObjectMeta))
		}
		if err == nil {
			continue
		}
		other := Cause{
			Code: finding.InvalidMetadata, Field: "metadata." + name, Message: err.Error(),
			Pos: r.obj.Position("metadata", name), Path: []any{"metadata", name},
		}
		if _, ok := v.(string); !ok && name == "name" || name == "namespace" {
			other.Hint = quoteHint
		}
		if c.Field == "metadata" || other.Field < c.Field {
			c = other
		}
	}
	return c
}

func dropNulls(v any) {
	m, _ := v.(map[string]any)
	for k, e := range m {
		if e == nil {
			delete(m, k)
		}
	}
}

func (r *review) unknownFields(paths []string) []Cause {
	var list []Cause
	older := false
	slices.Sort(paths)
	for _, text := range paths[:min(len(paths), maxCauses)] {
		path := pathOf(r.obj.Content, text)
		code := finding.UnknownField
		if r.obj.Kind == releaseKind && slices.Contains(chartOfFlux1, text) {
			if older {
				code = "" // one finding for the whole block
			}
			older = true
		}
		list = append(list, Cause{
			Code:    code,
			Path:    path,
			Field:   text,
			Message: fmt.Sprintf("unknown field %q", text),
			Pos:     r.obj.Position(path...),
			Hint:    r.unknownHint(path),
		})
	}
	return list
}

// validate is the API server's strategy for creating a custom resource. It leaves out embedded resources and the types
// of lists, which the schemas do not have: parsing a schema with such a keyword fails.
func (r *review) validate() error {
	errs := r.validateMetadata()
	errs = append(errs, r.schema.check(nil, r.content)...)
	errs = append(errs, r.validateRules(errs)...)
	errs = slices.DeleteFunc(errs, r.isForeignScheme)
	errs = append(errs, r.durations(errs)...)
	errs = append(errs, r.alternatives()...)
	if causes := append(r.errs, r.causes(errs)...); len(causes) > 0 {
		return r.invalid(causes)
	}
	return nil
}

// validateMetadata checks the metadata. It refuses generateName, as kubectl apply does: printed objects must have a name.
func (r *review) validateMetadata() field.ErrorList {
	u := &unstructured.Unstructured{Object: r.content}
	path := field.NewPath("metadata")
	errs := metavalidation.ValidateObjectMetaAccessor(u, true, metavalidation.NameIsDNSSubdomain, path)
	for _, e := range errs {
		if e.Field == "metadata.name" && e.Type == field.ErrorTypeRequired && u.GetGenerateName() != "" {
			e.Detail = "cannot use generate name with apply"
		}
	}
	return errs
}

// validateRules checks the rules. They rely on the types, so that some other errors prevent the check.
func (r *review) validateRules(errs field.ErrorList) field.ErrorList {
	r.broken = r.schema.checkRules(nil, r.content)
	if len(r.broken) > 0 && slices.ContainsFunc(errs, isBlocking) {
		r.broken = nil
		return field.ErrorList{field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")}
	}
	return r.broken
}

func isBlocking(e *field.Error) bool {
	switch e.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

var anyScheme = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://`) })

// isForeignScheme reports whether an error is that of a HelmRepository whose URL has an unknown scheme.
// The API document describes such an object as stalled, not refused.
func (r *review) isForeignScheme(e *field.Error) bool {
	url, ok := e.BadValue.(string)
	if !ok || r.obj.Kind != "HelmRepository" || e.Field != "spec.url" || e.Type != field.ErrorTypeInvalid {
		return false
	}
	m := anyScheme().FindStringSubmatch(url)
	if m == nil {
		return false
	}
	switch strings.ToLower(m[1]) {
	case "http", "https", "oci":
		return false
	}
	return true
}

// durations refuses durations that match the pattern but are invalid: the controllers could not decode them.
func (r *review) durations(errs field.ErrorList) field.ErrorList {
	var found field.ErrorList
	for _, name := range durationFields(r.obj.Kind) {
		text, ok := manifest.ValueAt(r.content, pathOf(nil, name)).(string)
		if !ok || slices.ContainsFunc(errs, func(e *field.Error) bool { return e.Field == name }) {
			continue
		}
		if _, err := time.ParseDuration(text); err != nil {
			found = append(found, field.Invalid(field.NewPath(name), text, err.Error()))
		}
	}
	return found
}

func durationFields(kind string) []string {
	fields := []string{"spec.interval", "spec.retryInterval", "spec.timeout"}
	if kind == releaseKind {
		fields = append(fields, "spec.chart.spec.interval")
		for _, action := range []string{"install", "upgrade", "rollback", "uninstall", "test"} {
			fields = append(fields, "spec."+action+".timeout")
		}
	}
	return fields
}

// typed converts the content to the controller's own type.
func (r *review) typed() (any, error) {
	typed := schemas[r.obj.Kind].typed()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(r.content, typed); err != nil {
		return nil, r.badRequest("", []Cause{{Code: finding.InvalidValue, Message: err.Error(), Pos: r.obj.Pos}})
	}
	return typed, nil
}

// Operator is Admit for the kinds of the Flux operator. It refuses no object of a kind that it does not know, or of a version
// other than v1.
func Operator(obj *manifest.Object) error {
	k, ok := operatorSchemas[obj.Kind]
	if !ok || obj.APIVersion != manifest.OperatorGroup+"/v1" {
		return nil
	}
	s, err := k.schema()
	if err != nil {
		return fmt.Errorf("schema of %s: %w", obj.Kind, err)
	}
	r := &review{obj: obj, schema: s}
	r.copy()
	if err := r.decode(); err != nil {
		return err
	}
	return r.validate()
}
