package manifest

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// TestConceal removes the confidential texts of an object from a document, field by field, and keeps the rest.
func TestConceal(t *testing.T) {
	type m = map[string]any
	for name, c := range map[string]struct{ document, content, shown, want any }{
		"nothing hidden":  {m{"a": "x", "b": "y"}, m{"a": "x"}, m{"a": "x"}, m{"a": "x", "b": "y"}},
		"a field":         {m{"a": "x", "b": "y"}, m{"a": "x", "b": "y"}, m{"a": "REDACTED", "b": "y"}, m{"a": "REDACTED", "b": "y"}},
		"a field in part": {m{"a": "u-x"}, m{"a": "u-x"}, m{"a": "u-REDACTED"}, m{"a": "u-REDACTED"}},
		"a number":        {m{"a": int64(7)}, m{"a": int64(7)}, m{"a": "REDACTED"}, m{"a": "REDACTED"}},
		"a key":           {m{"x": "y"}, m{"x": "y"}, m{"REDACTED": "y"}, m{"REDACTED": "REDACTED"}},
		"a default":       {m{"a": "x", "new": "d"}, m{"a": "x"}, m{"a": "REDACTED"}, m{"a": "REDACTED", "new": "d"}},
		"an item":         {m{"l": []any{"x", "y"}}, m{"l": []any{"x", "y"}}, m{"l": []any{"x", "REDACTED"}}, m{"l": []any{"x", "REDACTED"}}},
		"a longer list":   {m{"l": []any{"x", "y", "z"}}, m{"l": []any{"x", "y"}}, m{"l": []any{"x", "REDACTED"}}, m{"l": "REDACTED"}},
		"a shorter list":  {m{"l": []any{"x"}}, m{"l": []any{"x", "y"}}, m{"l": []any{"x", "REDACTED"}}, m{"l": "REDACTED"}},
		"a list shown as longer": {m{"l": []any{"x", "y"}}, m{"l": []any{"x", "y"}}, m{"l": []any{"x"}},
			m{"l": "REDACTED"}},
		"a list that is a text":   {m{"l": []any{"x"}}, m{"l": []any{"x"}}, m{"l": "REDACTED"}, m{"l": "REDACTED"}},
		"a text that is a list":   {m{"l": []any{"x"}}, m{"l": "x"}, m{"l": []any{"x", "REDACTED"}}, m{"l": "REDACTED"}},
		"an empty list of a text": {m{"l": []any{}}, m{"l": "x"}, m{"l": []any{}}, m{"l": "REDACTED"}},
		"a map that is a text":    {m{"l": m{"a": "x"}}, m{"l": m{"a": "x"}}, m{"l": "REDACTED"}, m{"l": "REDACTED"}},
	} {
		o := &Object{}
		o.Content, _ = c.content.(m)
		shown, _ := c.shown.(m)
		o.Confide([]string{"x"}, shown)
		if got := o.Conceal(c.document); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestItemIgnores checks that a comment in one item of a list does not apply to its neighbours.
func TestItemIgnores(t *testing.T) {
	const text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n" +
		"- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: b} # helmsrc:ignore HS001\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: c}\n"
	f, err := ParseFile("list.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range f.Objects() {
		if got := len(o.Ignores()); got != map[string]int{"a": 0, "b": 1, "c": 0}[o.Name] {
			t.Errorf("%s: %d comments", o.Name, got)
		}
	}
	if n := len(f.Objects()); n != 3 {
		t.Errorf("%d objects", n)
	}
}

// TestCheckExpansion checks that a text is limited in size before it is parsed.
func TestCheckExpansion(t *testing.T) {
	const sign = "# & *\n"
	if err := CheckExpansion("a.yaml", append([]byte(sign), bytes.Repeat([]byte("\n"), maxFileSize-len(sign))...)); err != nil {
		t.Errorf("as large as may be: %v", err)
	}
	err := CheckExpansion("a.yaml", bytes.Repeat([]byte("\n"), maxFileSize+1))
	if parse := new(ParseError); !errors.As(err, &parse) || !strings.Contains(err.Error(), "larger than 32 MiB") {
		t.Errorf("too large: %v", err)
	}
}

// TestNoObjects checks the reason why a file has no objects.
func TestNoObjects(t *testing.T) {
	broken, skipped := errors.New("broken"), Skip{File: "a.yaml", Reason: "a template"}
	for name, c := range map[string]struct {
		file *File
		want string
	}{
		"error":             {&File{errs: []error{broken}, skips: []Skip{skipped}}, "broken"},
		"skipped":           {&File{skips: []Skip{skipped}}, "a template"},
		"skipped in a list": {&File{batch: batch{skips: []Skip{skipped}}}, "a template"},
		"neither":           {&File{}, ""},
	} {
		got := ""
		if err := c.file.NoObjects(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
