package report

import (
	"encoding/json"
	"io"
)

// Encode writes a JSON document for programs and for people.
func Encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// EncodeLines writes one JSON object a line.
func EncodeLines[T any](w io.Writer, items []T) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for i := range items {
		if err := e.Encode(&items[i]); err != nil {
			return err
		}
	}
	return nil
}
