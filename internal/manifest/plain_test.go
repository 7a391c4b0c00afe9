package manifest

import (
	"reflect"
	"testing"

	"go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	sigsyaml "sigs.k8s.io/yaml"
)

// asText is the value of a document as sigs.k8s.io/yaml has it.
func asText(text []byte) (any, error) {
	data, err := sigsyaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	var v any
	return v, utiljson.Unmarshal(data, &v)
}

// TestPlainValue has each value read from the tree, and from the text as kubectl does. Where they could differ, the tree is not
// trusted.
func TestPlainValue(t *testing.T) {
	for text, plain := range map[string]bool{
		"a": true, "a b": true, "v1.2.3": true, "1.2.3": true, "1.2.3-rc.1": true, "10m": true, "1h30m": true, "/a/b": true, "${A}": true, "./a": true, "../a": true, "_a": true,
		"ghcr.io/a/b:c": true, "apps/v1": true, "nan": true, "inf": true, "Nope": true, "yesterday": true, "0": true, "7": true, "8080": true, "123456789012345678": true,
		"true": true, "false": true, "null": true, "~": true, "": true, "'yes'": true, `"0x1f"`: true, `"a\tb\u00e9\U0001F600"`: true, "''": true, "1s": true, "5Mi": true, "2Gi": true,
		"True": false, "FALSE": false, "Null": false, "NULL": false, "yes": false, "No": false, "on": false, "OFF": false, "y": false, "N": false,
		"1.5": false, "1.": false, ".5": false, "1e3": false, "0x1f": false, "0o7": false, "0b1": false, "010": false, "00": false, "1_000": false, "-1": false, "+1": false, "1:30": false,
		"1234567890123456789": false, "2001-01-01": false, "2001-01-01T00:00:00Z": false, ".inf": false, "-.inf": false, ".nan": false, "<<": false, "=": false, "1.2": false, "-a": false,
		"0.0.0": true, "1.2.": true, "1..2": true, "12e03": false, "0xdeadbeef": false, "2020-1": false, "5d": false, "1f": false,
		"!!str 1": false, "!!int \"1\"": false, "&a b": false, "!x y": false,
		"{a: b, c: [d, {e: 1}], f: {}, g: []}": true, "{a: 1, 2: b}": true, "{1.5: a}": false, "{true: a}": false, "{~: a}": false, "{yes: a}": false, "{? [a] : b}": false,
		"{&a b: c}": false, "{!!str b: c}": false, "[&a b, *a]": false, "{<<: {a: b}}": false, "{a: b, a: c}": false, "[1, 2.5]": false, "[yes]": false,
		"|\n  a\n   b\n\n  c\n": true, ">-\n  a\n  b\n\n   c\n  d\n": true, "|+\n  a\n\n\n": true, "|2-\n   a\n": true, "'a\n  b\n\n  c'": true, "\"a\\\n  b\n  c\"": true, "a\n  b\n\n  c": true,
	} {
		d := newDocument("a.yaml", []byte("v: "+text+"\n"), 0, 0, false)
		tree, err := d.parse()
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, ok := plainValue(tree)
		if ok != plain {
			t.Errorf("%s: plain %v, want %v", text, ok, plain)
		}
		if !ok {
			continue
		}
		if want, err := asText(d.text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, want %#v, %v", text, got, want, err)
		}
		// kustomize
		var content map[string]any
		if err := tree.Decode(&content); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestPlainScalars compares all short texts of the characters that numbers, times and words are made of.
func TestPlainScalars(t *testing.T) {
	const characters = "0189aeExXoObn_.:+-tTzZ~/ "
	var try func(text string, more int)
	try = func(text string, more int) {
		if v, ok := plainScalar(&yaml.Node{Kind: yaml.ScalarNode, Value: text}); ok && text != "" {
			want, err := asText([]byte("v: " + text + "\n"))
			m, _ := want.(map[string]any)
			if trimmed := m["v"]; err == nil && !reflect.DeepEqual(v, trimmed) && text[len(text)-1] != ' ' {
				t.Errorf("%q: %#v, want %#v", text, v, trimmed)
			}
		}
		if more > 0 {
			for _, c := range characters {
				try(text+string(c), more-1)
			}
		}
	}
	try("", 3)
	for _, start := range []string{"200", "2001-01-0", "0x", "1.2", "12:3", "0o", "1e", ".", "tru", "nul"} {
		try(start, 2)
	}
}

// TestPlainDocuments cuts files into documents that every reader sees, or leaves them.
func TestPlainDocuments(t *testing.T) {
	for text, want := range map[string]int{
		named("a"):                                1,
		"---\n" + named("a"):                      1,
		"# a\n---\n" + named("a"):                 1,
		named("a") + "---\n" + named("b"):         2,
		named("a") + "---  \n" + named("b"):       2,
		named("a") + "---\n":                      1,
		named("a") + "---\n---\n" + named("b"):    0,
		"---\n---\n" + named("b"):                 0,
		named("a") + "---\n# a\n---\n":            0,
		named("a") + "--- # a\n" + named("b"):     0,
		named("a") + "...\n---\n" + named("b"):    0,
		"%YAML 1.1\n---\n" + named("a"):           0,
		"\uFEFF" + named("a"):                     0,
		named("a") + "  x: \"\t\"\n":              0,
		"a: b\r\n":                                0,
		named("a") + "---\n" + named("b: [yes]"):  0,
		jsonNamed("a"):                            0,
		jsonNamed("a") + jsonNamed("b"):           0,
		"":                                        0,
		"- a\n":                                   0,
		"kind: Deployment\napiVersion: apps/v1\n": 1,
	} {
		f, err := ParseFile("a.yaml", []byte(text))
		if err != nil {
			continue
		}
		if got, ok := f.PlainDocuments(); len(got) != want || ok != (want > 0) {
			t.Errorf("%q: %d, %v, want %d", text, len(got), ok, want)
		}
	}
}

// FuzzPlainValue holds that a value which is read from the tree is the one that kubectl reads from the text.
func FuzzPlainValue(f *testing.F) {
	for _, seed := range []string{
		chart, flow("a"), chart + "  x: |\n    a\n\n     b\n  y: >-\n    b\n    c\n\n  z: 'a''b'\n  w: \"a\\n\\\n    b\"\n  v: a\n    b # c\n",
		chart + "  x: [1, 2.5, yes, ~, 0x1f, 1e3, 2001-01-01]\n", "a: {b: c,d: [e,f], 'g':h, i:j, k: l:m}\n", "? a\n: b\n", "a:\n- b\n-  - c\n   - d: e\n     f: g\n", "a: |2-\n    b\n   c\n",
		"a: b: c", "!", "a: ! true\n", "[a]: b", "a: !!str 1", "a: *b", "- 1\n- 08\n", "a: \"\\xff\\ud800\"", "a: >+1\n\n b\n  c\n\n", "a: 'b\n\n  c'\n", "\"a\": b\n'c': d\n", "a:\n  # b\n  c: d # e\n\n  f:\n", "a: \u00a0b\u2028c\u0085d\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := decodeText("a.yaml", text); err != nil {
			return
		}
		d := newDocument("a.yaml", text, 0, 0, false)
		tree, err := d.parse()
		if err != nil || tree == nil || d.check(tree) != nil {
			return
		}
		got, ok := d.plainTree(tree)
		if !ok {
			return
		}
		if want, err := asText(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%#v, want %#v, %v", got, want, err)
		}
	})
}
