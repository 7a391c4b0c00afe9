package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/table"
)

// A Format is a way to write documents.
type Format string

// The formats of the -o flag, except the table of package overview.
const (
	YAML  Format = "yaml"  // documents, each after a line "---"
	JSON  Format = "json"  // one v1 List
	JSONL Format = "jsonl" // a document per line
	Name  Format = "name"  // kind.group/name per line
	Wide  Format = "wide"  // one table per kind, with kubectl's columns, and revision and path of the artifact
)

// Formats lists all formats.
func Formats() []Format { return []Format{YAML, JSON, JSONL, Wide, Name} }

// An Encoder writes documents. Close must be called after the last one: json and the tables are not complete before.
type Encoder struct {
	Encode func(doc map[string]any) error // writes one document
	Close  func() error                   // writes the rest of the output; it does not close the writer
}

// NewEncoder returns an encoder that writes to w. The tables compute ages at now.
func NewEncoder(w io.Writer, format Format, now time.Time) (*Encoder, error) {
	nothing := func() error { return nil }
	switch format {
	case YAML:
		return &Encoder{func(doc map[string]any) error { return writeYAML(w, doc) }, nothing}, nil
	case JSON:
		list := &jsonList{w: w}
		return &Encoder{list.encode, list.close}, nil
	case JSONL:
		return &Encoder{func(doc map[string]any) error { return writeJSON(w, doc, "", "") }, nothing}, nil
	case Name:
		return &Encoder{func(doc map[string]any) error { return writeName(w, doc) }, nothing}, nil
	case Wide:
		tables := &tables{w: w, now: now}
		return &Encoder{tables.add, tables.flush}, nil
	}
	template, err := ParseTemplate(string(format))
	if err != nil {
		return nil, err
	}
	if template != nil {
		all := &collected{w: w, template: template}
		return &Encoder{all.add, all.close}, nil
	}
	return nil, fmt.Errorf("unknown output format %q, must be one of: %s", format, joinFormats())
}

func joinFormats() string {
	var names []string
	for _, format := range Formats() {
		names = append(names, string(format))
	}
	return strings.Join(names, ", ")
}

func writeYAML(w io.Writer, doc map[string]any) error {
	text, err := marshalJSON(doc, "", "")
	if err != nil {
		return err
	}
	b, err := yaml.JSONToYAML(text)
	if err != nil {
		return fmt.Errorf("document as YAML: %w", err)
	}
	_, err = w.Write(append([]byte("---\n"), b...))
	return err
}

func writeJSON(w io.Writer, doc map[string]any, prefix, indent string) error {
	b, err := marshalJSON(doc, prefix, indent)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// marshalJSON writes JSON without escaping "<", ">" and "&", which version constraints contain.
func marshalJSON(doc map[string]any, prefix, indent string) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent(prefix, indent)
	if err := encoder.Encode(doc); err != nil {
		return nil, fmt.Errorf("document as JSON: %w", err)
	}
	return escaped(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// isControl reports whether a terminal may obey a character. Texts that people write do not need it.
func isControl(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}

// escaped escapes control characters in JSON that Go does not escape: Go escapes only those below a blank. They occur only in
// strings.
func escaped(text []byte) []byte {
	if bytes.IndexFunc(text, isControl) < 0 {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		if isControl(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

// A jsonList writes a v1 List as kubectl does, item by item.
type jsonList struct {
	w     io.Writer
	begun bool
}

func (l *jsonList) encode(doc map[string]any) error {
	const prefix, indent = "        ", "    "
	b, err := marshalJSON(doc, prefix, indent)
	if err != nil {
		return err
	}
	before := ",\n" + prefix
	if !l.begun {
		before = "{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n" + prefix
	}
	l.begun = true
	_, err = l.w.Write(append([]byte(before), b...))
	return err
}

func (l *jsonList) close() error {
	end := "\n    ],\n    \"kind\": \"List\"\n}\n"
	if !l.begun {
		end = "{\n    \"apiVersion\": \"v1\",\n    \"items\": [],\n    \"kind\": \"List\"\n}\n"
	}
	_, err := io.WriteString(l.w, end)
	return err
}

func writeName(w io.Writer, doc map[string]any) error {
	kind := strings.ToLower(Text(doc, "kind"))
	if group, _, found := strings.Cut(Text(doc, "apiVersion"), "/"); found {
		kind += "." + group
	}
	_, err := fmt.Fprintf(w, "%s/%s\n", table.Printable(kind), table.Printable(Text(doc, "metadata", "name")))
	return err
}
