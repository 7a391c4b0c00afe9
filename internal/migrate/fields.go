package migrate

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/edit"
)

// fields are written in their order.
type fields []edit.Field

func scalar(key, value string) edit.Field { return edit.Field{Key: key, Value: value} }

// literal returns a field with a number or a boolean.
func literal(key, value string) edit.Field { return edit.Field{Key: key, Value: value, Literal: true} }

// text adds a text unless it is empty.
func (f *fields) text(key, value string) {
	if value != "" {
		*f = append(*f, scalar(key, value))
	}
}

// yes adds a field with the value true if it is set.
func (f *fields) yes(key string, is bool) {
	if is {
		*f = append(*f, literal(key, "true"))
	}
}

// seconds adds a duration, unless it is nil.
func (f *fields) seconds(key string, value any) {
	if value != nil {
		f.text(key, fmt.Sprint(value)+"s")
	}
}

// within adds a mapping unless it is empty.
func (f *fields) within(key string, inner ...edit.Field) {
	if len(inner) > 0 {
		*f = append(*f, edit.Field{Key: key, Fields: inner})
	}
}

// drop removes a field of the mapping at a path, if the mapping has it.
func drop(key string, path ...string) change {
	return func(d *edit.Document, root *yaml.Node) error {
		if at := child(root, path...); child(at, key) != nil {
			return d.ReplaceField(at, key, nil)
		}
		return nil
	}
}
