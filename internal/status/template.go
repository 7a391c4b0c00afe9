package status

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/template"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
)

// The prefixes of formats with a template, as in kubectl.
const (
	JSONPath   = "jsonpath="
	GoTemplate = "go-template="
)

// A Template writes selected fields of a value.
type Template struct {
	execute func(w io.Writer, value any) error
}

// ParseTemplate parses a format that begins with [JSONPath] or [GoTemplate]. It returns nil for other formats. As in kubectl,
// missing keys are no error, and no line break is added at the end.
func ParseTemplate(format string) (*Template, error) {
	if text, ok := strings.CutPrefix(format, JSONPath); ok {
		path := jsonpath.New("output").AllowMissingKeys(true)
		if err := path.Parse(text); err != nil {
			return nil, fmt.Errorf("jsonpath %q: %w", text, err)
		}
		return &Template{path.Execute}, nil
	}
	if text, ok := strings.CutPrefix(format, GoTemplate); ok {
		parsed, err := template.New("output").Funcs(template.FuncMap{"base64decode": decodeBase64}).Parse(text)
		if err != nil {
			return nil, fmt.Errorf("go-template %q: %w", text, err)
		}
		return &Template{parsed.Execute}, nil
	}
	return nil, nil
}

func decodeBase64(text string) (string, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	return string(b), err
}

// Execute executes the template with the decoded JSON of a value.
func (t *Template) Execute(w io.Writer, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var plain any
	if err := utiljson.Unmarshal(b, &plain); err != nil {
		return err
	}
	return t.execute(w, plain)
}

// collected executes a template with a v1 List of all documents.
type collected struct {
	w        io.Writer
	template *Template
	items    []any
}

func (c *collected) add(doc map[string]any) error {
	c.items = append(c.items, doc)
	return nil
}

func (c *collected) close() error {
	if c.items == nil {
		c.items = []any{}
	}
	return c.template.Execute(c.w, map[string]any{"apiVersion": "v1", "kind": "List", "items": c.items})
}
