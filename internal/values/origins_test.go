package values

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sigsyaml "sigs.k8s.io/yaml"
)

// TestOrigins has a key of each kind of origin, and later values that replace or extend it.
func TestOrigins(t *testing.T) {
	refs := []meta.ValuesReference{
		{Kind: "ConfigMap", Name: "base"},
		{Kind: "Secret", Name: "db"},
		{Kind: "ConfigMap", Name: "base", ValuesKey: "host", TargetPath: "ingress.host"},
		{Kind: "Secret", Name: "db", ValuesKey: "password", TargetPath: "db.users[1].password"},
	}
	inline := map[string]any{
		"db":      map[string]any{"users": []any{map[string]any{"name": "a"}, map[string]any{"name": "b"}}},
		"ingress": map[string]any{"host": "inline"},
		"same":    "x",
	}
	data := objects{
		"ConfigMap/base": {"values.yaml": "replicas: 2\nover: base\nsame: x\nempty: {}\n", "host": "example.org"},
		"Secret/db":      {"values.yaml": "over: secret\n", "password": "hunter2"},
	}
	composed, origins, err := Trace("apps", refs, inline, data.lookup, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path []any
		want string // the kind and name of the reference, "inline", or "several"
	}{
		{[]any{"replicas"}, "ConfigMap/base"},
		{[]any{"over"}, "Secret/db"},
		{[]any{"same"}, "inline"},
		{[]any{"empty"}, "ConfigMap/base"},
		{[]any{"db", "users"}, "several"},
		{[]any{"db", "users", 0}, "inline"},
		{[]any{"db", "users", 1, "name"}, "inline"},
		{[]any{"db", "users", 1, "password"}, "Secret/db"},
		{[]any{"ingress", "host"}, "ConfigMap/base"},
	} {
		value, there := at(composed, tt.path)
		if !there {
			t.Errorf("%v: no such value in %v", tt.path, composed)
			continue
		}
		reference, found := origins.Of(value, tt.path...)
		got := "several"
		switch {
		case found && reference == nil:
			got = "inline"
		case found:
			got = reference.Kind + "/" + reference.Name
		}
		if got != tt.want {
			t.Errorf("%v is from %s, want %s", tt.path, got, tt.want)
		}
	}
	if !origins.Secret() {
		t.Error("no value is from a Secret")
	}
}

// A text that is written in parts holds all composed values.
func TestWriteMany(t *testing.T) {
	composed, want := map[string]any{}, ""
	for i := range 2*atOnce + 500 {
		name := fmt.Sprintf("key%05d", i)
		composed[name] = map[string]any{"b": []any{"x"}, "a": int64(i)}
		want += fmt.Sprintf("%s:\n  a: %d\n  b:\n    - x\n", name, i)
	}
	var text strings.Builder
	if err := new(Origins).Write(&text, composed, WriteOptions{}); err != nil || text.String() != want {
		t.Errorf("%v, wrote\n%.500s", err, text.String())
	}
	text.Reset()
	if err := new(Origins).Write(&text, map[string]any{}, WriteOptions{}); err != nil || text.String() != "{}\n" {
		t.Errorf("%v, wrote %q", err, text.String())
	}
}

// A text of several lines is written unchanged, however it begins.
func TestWriteTexts(t *testing.T) {
	for _, text := range []string{"\n  x\n", "\nx", "  a\nb", "a\n  b\n\n", "\n", "a\n\ttab \n", "a\r\nb\n", "\x1b[31m\na"} {
		composed := map[string]any{"a": text, "b": []any{text, map[string]any{"c": text}}}
		var written strings.Builder
		var back map[string]any
		if err := new(Origins).Write(&written, composed, WriteOptions{}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if err := sigsyaml.Unmarshal([]byte(written.String()), &back); err != nil || !reflect.DeepEqual(back, composed) {
			t.Errorf("%q is read as %q, %v, from\n%s", text, back, err, &written)
		}
	}
}
