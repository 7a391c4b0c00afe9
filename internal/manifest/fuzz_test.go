package manifest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	sigsyaml "sigs.k8s.io/yaml"
)

// FuzzAdd holds that reading never panics, that an error leaves the set as it was, that positions and comments lie
// inside the file, and that strict sigs.k8s.io/yaml, which kubectl uses, takes every single document that is taken here.
func FuzzAdd(f *testing.F) {
	for _, seed := range []string{
		chart, named("a") + "---\n" + named("b"), jsonNamed("a"), jsonNamed("a") + jsonNamed("b"),
		secretDoc("s", "data: {a: eA==}"), secretDoc("s", "sops: {mac: x}"), secretDoc("s", "stringData: {a: ${B}}"),
		"kind: List\napiVersion: v1\nitems:\n- " + flow("a") + "\n- " + flow("b") + "\n",
		"kind: List\napiVersion: v1\nitems: &a [*a]\n", "&x {kind: List, apiVersion: v1, items: [*x]}",
		chart + "  <<: {a: b}\n  x: &x [1, 2.5, yes, ~, 0x1f, 1e3, 2001-01-01]\n  y: *x\n",
		chart + "  on: a\n  1: b\n  ? c\n  : d\n", chart + "  x: |\n    a\n  y: >-\n    b\n",
		chart + "  x: |2-\n     # " + ignoreMark + " A\n  y: &a !!str \"# " + ignoreMark + "\\\n\" # " + ignoreMark + " B, C why\n  z: 'a' # " + ignoreMark + "\r",
		"a: b\n\tc: d", "a: {{ b }}", "\xff\xfea\x00", "\uFEFF---\n...\n%YAML 1.1\n---\n" + chart, "--- a\n", "- a", "{", "[", "\"", "\r", "a: b\rc: d",
		"{\"kind\":\"HelmChart\",\"kind\":\"HelmChart\",\"apiVersion\":\"source.toolkit.fluxcd.io/v1\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := NewSet("")
		if err := s.Add("f.yaml", data); err != nil {
			if len(s.objects)+len(s.data)+len(s.kinds)+len(s.byKey)+len(s.skips)+len(s.faults) > 0 {
				t.Errorf("error %v, yet something was added", err)
			}
			if _, ok := err.(*ParseError); !ok {
				t.Errorf("error %T: %v", err, err)
			}
			return
		}
		text, err := decodeText("f.yaml", data)
		if err != nil {
			t.Fatal(err)
		}
		lines := 1 + bytes.Count(text, []byte("\n")) + bytes.Count(text, []byte("\r")) + bytes.Count(text, []byte("\u0085")) +
			bytes.Count(text, []byte("\u2028")) + bytes.Count(text, []byte("\u2029"))
		for _, o := range s.objects {
			agree(t, o, lines)
			for _, i := range o.Ignores() {
				if i.Pos.Line < 1 || i.Pos.Line > lines || i.Pos.Column < 1 || i.Line > lines || i.Line > 0 && i.Line < i.Pos.Line {
					t.Errorf("a comment at %s of %d lines is for line %d", i.Pos, lines, i.Line)
				}
			}
		}
		for k := range s.data {
			s.Secret(k.namespace, k.name)
		}
	})
}

// agree walks the values of an object and asks for the position of each.
func agree(t *testing.T, o *Object, lines int) {
	var walk func(v any, path []any)
	walk = func(v any, path []any) {
		p := o.Position(path...)
		if p.Line < 1 || p.Line > lines || p.Column < 1 {
			t.Errorf("%v is at %s of %d lines", path, p, lines)
		}
		switch v := v.(type) {
		case map[string]any:
			for k, e := range v {
				walk(e, append(path[:len(path):len(path)], k))
			}
		case []any:
			for i, e := range v {
				walk(e, append(path[:len(path):len(path)], i))
			}
		case string, bool, int64, float64, nil:
		default:
			t.Errorf("%v is a %T", path, v)
		}
	}
	walk(o.Content, nil)
	doc := o.at.doc
	if doc.json || bytes.Contains(doc.text, []byte("<<")) {
		return
	}
	if _, err := sigsyaml.YAMLToJSONStrict(doc.text); err != nil {
		t.Errorf("strict reading fails: %v", err)
	}
}

// Every field of this document has a line of its own, so that values and positions can be held against each other.
func TestPositionsMatchValues(t *testing.T) {
	var b strings.Builder
	b.WriteString(chart)
	scalars := []string{"yes", "off", "~", "null", "''", "1", "0x1f", "0o17", "017", "1_000", "1e3", "1.5", "190:20:30", "2001-01-01", "true", "\"yes\"", "!!str yes", ".5", "+1", "12e4567"}
	for i, v := range scalars {
		fmt.Fprintf(&b, "  k%d: %s\n", i, v)
	}
	for _, k := range []string{"yes", "1.10", "007", "0x10", "1e3", "\"no\"", "2001-01-01", "a b", "~x", "'null'", "1_0", "190:20:30"} {
		fmt.Fprintf(&b, "  %s: key\n", k)
	}
	text := b.String()
	s := NewSet("")
	if err := s.Add("f.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	var reference map[string]any
	if err := sigsyaml.UnmarshalStrict([]byte(text), &reference); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text, "\n")
	seen := map[int]bool{}
	spec := s.Objects()[0].Content["spec"].(map[string]any)
	for k, v := range spec {
		want := reference["spec"].(map[string]any)[k]
		if n, ok := v.(int64); ok {
			v = float64(n)
		}
		if v != want {
			t.Errorf("%s is %v, sigs.k8s.io/yaml reads %v", k, v, want)
		}
		p := s.Objects()[0].Position("spec", k)
		if p.Line <= 5 || seen[p.Line] {
			t.Errorf("%q is at %s", k, p)
		}
		seen[p.Line] = true
		var line map[string]any
		if err := sigsyaml.Unmarshal([]byte(lines[p.Line-1]), &line); err != nil || len(line) != 1 {
			t.Fatalf("%q is at %s: %v, %v", k, p, line, err)
		}
		if got, ok := line[k]; !ok || got != want {
			t.Errorf("%q is at %s, which reads %v", k, p, line)
		}
	}
	if len(seen) != len(lines)-1-5 {
		t.Errorf("%d fields, want %d", len(seen), len(lines)-1-5)
	}
}

// Whole numbers do not pass through float64 on their way.
func TestNumbers(t *testing.T) {
	for _, text := range []string{
		chart + "  a: 9007199254740993\n  b: 1.5\n",
		`{"apiVersion":"source.toolkit.fluxcd.io/v1","kind":"HelmChart","spec":{"a":9007199254740993,"b":1.5}}`,
	} {
		s := NewSet("")
		if err := s.Add("f", []byte(text)); err != nil {
			t.Fatal(err)
		}
		spec := s.Objects()[0].Content["spec"].(map[string]any)
		if spec["a"] != int64(9007199254740993) || spec["b"] != 1.5 {
			t.Errorf("%v", spec)
		}
	}
}
