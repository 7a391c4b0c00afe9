package admission

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// InvalidError is the error of an object that the API server would refuse.
type InvalidError struct {
	Object  *manifest.Object
	Causes  []Cause // in the order of the file, never empty
	Message string  // of the API server, without the place
}

// Cause is one reason for a refusal, or for a warning.
type Cause struct {
	Code    finding.Code
	Field   string // such as spec.sourceRef.kind; empty for the whole object
	Message string // of the API server, with the field
	Hint    string
	Pos     manifest.Pos
	Path    []any
}

func (c Cause) String() string { return c.Pos.String() + ": " + c.Message }

func (e *InvalidError) Error() string { return e.Causes[0].Pos.String() + ": " + e.Message }

// Unplaced returns the message without the position.
func (e *InvalidError) Unplaced() string { return e.Message }

// Hint returns the hints of all causes.
func (e *InvalidError) Hint() string {
	var hints []string
	for _, c := range e.Causes {
		if c.Hint != "" && !slices.Contains(hints, c.Hint) {
			hints = append(hints, c.Hint)
		}
	}
	return strings.Join(hints, "; ")
}

// wrongVersion returns the error of an object with an unusable apiVersion.
func wrongVersion(obj *manifest.Object, code finding.Code, msg, hint string) error {
	cause := Cause{Code: code, Path: []any{"apiVersion"}, Field: "apiVersion", Message: msg, Hint: hint, Pos: obj.Position("apiVersion")}
	return &InvalidError{obj, []Cause{cause}, msg}
}

// NotServed returns the API server's error for an object of a version that it does not serve.
func NotServed(obj *manifest.Object, msg, hint string) error {
	return wrongVersion(obj, finding.RemovedVersion, msg, hint)
}

func (r *review) noMatch() error {
	msg := fmt.Sprintf("no matches for kind %q in version %q", manifest.BareKind(r.obj.Kind), r.obj.APIVersion)
	return wrongVersion(r.obj, finding.UnknownVersion, msg, "the version is "+stored(r.obj))
}

// badRequest returns the API server's error for an object that it cannot decode.
func (r *review) badRequest(prefix string, causes []Cause) error {
	sortCauses(causes)
	kind := manifest.BareKind(r.obj.Kind)
	msg := fmt.Sprintf("%s in version %q cannot be handled as a %s: %s", kind, version(r.obj), kind,
		prefix+join(causes, ", "))
	return &InvalidError{r.obj, causes, msg}
}

// invalid returns the API server's error for an object that it decodes but refuses. The message has the form of its
// aggregates: one cause alone, several in brackets, without duplicates.
func (r *review) invalid(causes []Cause) error {
	sortCauses(causes)
	text := join(causes, ", ")
	if len(causes) > 1 {
		text = "[" + text + "]"
	}
	msg := fmt.Sprintf("%s.%s %q is invalid: %s", manifest.BareKind(r.obj.Kind), r.obj.Group(), r.obj.Name, text)
	return &InvalidError{r.obj, causes, msg}
}

func join(causes []Cause, sep string) string {
	var texts []string
	for _, c := range causes {
		texts = append(texts, c.Message)
	}
	return strings.Join(texts, sep)
}

// sortCauses sorts causes by their position in the file; the validator walks maps and has no order. Causes without a field are
// last.
func sortCauses(causes []Cause) {
	slices.SortStableFunc(causes, func(a, b Cause) int {
		if a.Field == "" || b.Field == "" {
			return len(b.Field) - len(a.Field)
		}
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column),
			cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
}

// maxCauses is the limit of reported causes for an object, as in an API server. Each is searched among all fields.
const maxCauses = 100

func (r *review) causes(errs field.ErrorList) []Cause {
	var list []Cause
	if len(errs) > maxCauses { // sorted, so that the same ones are kept each time
		slices.SortFunc(errs, func(a, b *field.Error) int {
			if a.Field != b.Field {
				return strings.Compare(a.Field, b.Field)
			}
			return strings.Compare(a.Error(), b.Error())
		})
		errs = errs[:maxCauses]
	}
	for _, e := range errs {
		path := pathOf(r.obj.Content, e.Field)
		r.plain(path, e)
		c := Cause{
			Code: r.code(path, e), Field: e.Field, Message: e.Error(), Pos: r.obj.Position(path...), Path: path, Hint: r.hint(path, e),
		}
		if e.Field == "<nil>" {
			c.Field = ""
		}
		if !slices.ContainsFunc(list, func(other Cause) bool { return other.Message == c.Message }) {
			list = append(list, c)
		}
	}
	return list
}

func (r *review) code(path []any, e *field.Error) finding.Code {
	text, _ := manifest.ValueAt(r.obj.Content, path).(string)
	switch {
	case len(manifest.Variables(text)) > 0:
		return finding.UnresolvedVariable
	case slices.Contains(r.broken, e):
		return finding.BrokenRule
	case len(path) == 0 && e.Type == field.ErrorTypeInvalid && e.BadValue == nil:
		return "" // rules were not checked: the errors that prevented it are reported
	case e.Type == field.ErrorTypeRequired:
		return finding.MissingField
	case len(path) > 0 && path[0] == "metadata":
		return finding.InvalidMetadata
	case e.Type == field.ErrorTypeTypeInvalid:
		return finding.WrongType
	case e.Type == field.ErrorTypeNotSupported:
		return finding.UnsupportedValue
	case isDuration(path):
		return finding.InvalidDuration
	}
	return finding.InvalidValue
}

func isDuration(path []any) bool {
	if len(path) == 0 {
		return false
	}
	switch path[len(path)-1] {
	case "interval", "timeout", "retryInterval":
		return true
	}
	return false
}
