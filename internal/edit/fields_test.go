package edit

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// at finds the mapping at a path.
func at(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		i := keyIndex(n, key)
		if i < 0 {
			return nil
		}
		n = n.Content[i+1]
	}
	return n
}

func TestReplaceField(t *testing.T) {
	ref := []Field{{Key: "ref", Fields: []Field{{Key: "kind", Value: "X"}, {Key: "tag", Value: "1.0", Comment: "# m"}}}}
	lists := []Field{{Key: "files", Items: []string{"a", "1"}}, {Key: "from", List: [][]Field{{{Key: "kind", Value: "X"}, {Key: "on", Value: "true", Literal: true}}, {{Key: "kind", Value: "Z"}}}}}
	for _, tt := range []struct {
		name, before, after string
		fields              []Field
	}{
		{"block", "spec:\n  a: 1\n  chart: # c1\n    # c2\n    spec:\n      b: x # c3\n      v: 1.0 # m\n  # c4\n  z: 2 # c5\n",
			"spec:\n  a: 1\n  # c1\n  # c2\n  # c3\n  ref:\n    kind: X\n    tag: \"1.0\" # m\n  # c4\n  z: 2 # c5\n", ref},
		{"last line of a file", "spec:\n  chart: {b: [x, \"}\"]}", "spec:\n  ref:\n    kind: X\n    tag: \"1.0\" # m", ref},
		{"line endings", "spec:\r\n    chart:\r\n        - a\r\n        - b\r\n    c: d\r\n", "spec:\r\n    ref:\r\n      kind: X\r\n      tag: \"1.0\" # m\r\n    c: d\r\n", ref},
		{"flow", "spec: {a: 1, chart: {spec: {v: it's}}, c: d} # c\n", "spec: {a: 1, ref: {kind: X, tag: \"1.0\"}, c: d} # c\n", ref},
		{"a quote in flow", "spec: {chart: {a: {b: it\"s}}, c: d}\n", "spec: {ref: {kind: X, tag: \"1.0\"}, c: d}\n", ref},
		{"a bracket in a comment in flow", "spec:\n  chart: {a: b,\n# }\n    e: f}\n  c: d\n", "spec:\n  # }\n  ref:\n    kind: X\n    tag: \"1.0\" # m\n  c: d\n", ref},
		{"a bracket in a comment behind a value in flow", "spec:\n  chart: {a: b, # }\n    e: f}\n  c: d\n", "spec:\n  # }\n  c: d\n", nil},
		{"the same with lone carriage returns", "spec:\r  chart: {a: b,\r# }\r    e: f}\r  c: d\r", "spec:\r  # }\r  c: d\r", nil},
		{"a # in a value in flow", "spec:\n  chart: {a: b#}\n  c: d\n", "spec:\n  c: d\n", nil},
		{"the same with other line endings", "spec:\r\n  chart: {a: b,\r\n# }\r\n    e: f}\r\n  c: d\r\n", "spec:\r\n  # }\r\n  c: d\r\n", nil},
		{"removed", "spec:\n  a: 1\n  chart: x # c\n  b: |\n    x\n", "spec:\n  a: 1\n  # c\n  b: |\n    x\n", nil},
		{"removed from flow", "spec: {a: 1, chart: x, c: d}\n", "spec: {a: 1, c: d}\n", nil},
		{"removed from the end of flow", "spec: {a: 1, chart: x}\n", "spec: {a: 1}\n", nil},
		{"no value", "spec:\n  a: 1\n  chart:\n  b: 2\n", "spec:\n  a: 1\n  b: 2\n", nil},
		{"list that is not indented", "spec:\n  chart:\n  - a: {b: c}\n  - d\n  b: 2\n", "spec:\n  b: 2\n", nil},
		{"block scalar", "spec:\n  chart: |\n    a\n\n    b\n\n  b: 2\n", "spec:\n\n  b: 2\n", nil},
		{"lists", "spec:\n  chart: x\n  b: 2\n", "spec:\n  files:\n  - a\n  - \"1\"\n  from:\n  - kind: X\n    \"on\": true\n  - kind: Z\n  b: 2\n", lists},
		{"lists in flow", "spec: {chart: x, b: 2}\n", "spec: {files: [a, \"1\"], from: [{kind: X, \"on\": true}, {kind: Z}], b: 2}\n", lists},
		{"an anchor", "spec:\n  chart: &x {a: b}\n  b: *x\n", "", ref},
		{"in an alias", "spec: &s\n  chart: {a: b}\n  b: 1\nc: *s\n", "", ref},
		{"not there", "spec:\n  b: 1\n", "", ref},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Parse([]byte(tt.before))
			d := f.documents[0]
			err := d.ReplaceField(at(d.Root, "spec"), "chart", tt.fields)
			got, _, refusals := f.Apply()
			if tt.after == "" {
				if err == nil && len(refusals) == 0 || string(got) != tt.before {
					t.Errorf("became %q", got)
				}
				return
			}
			if err != nil || len(refusals) > 0 || string(got) != tt.after {
				t.Errorf("became\n%q, not\n%q: %v, %v", got, tt.after, err, refusals)
			}
		})
	}
}

// TestReplaceFieldAndSet edits a value and a field of one document.
func TestReplaceFieldAndSet(t *testing.T) {
	f := Parse([]byte("spec:\n  a: 1\n  chart: x\n  b: c\n"))
	d := f.documents[0]
	spec := at(d.Root, "spec")
	for _, err := range []error{d.Set(at(spec, "b"), "2"), d.ReplaceField(spec, "chart", []Field{{Key: "ref", Value: "y z"}}), d.Set(at(spec, "a"), "3")} {
		if err != nil {
			t.Error(err)
		}
	}
	if got, edits, refusals := f.Apply(); string(got) != "spec:\n  a: \"3\"\n  ref: y z\n  b: \"2\"\n" || edits != 3 || len(refusals) > 0 {
		t.Errorf("became %q by %d edits, refused %v", got, edits, refusals)
	}
}

func TestInsertFields(t *testing.T) {
	fields := []Field{{Key: "ref", Fields: []Field{{Key: "semver", Value: ">=1"}}}, {Key: "on", Value: "true", Literal: true}}
	for before, after := range map[string]string{
		"spec:\n  url: x # c\n  b: 1\n":    "spec:\n  url: x # c\n  ref:\n    semver: \">=1\"\n  \"on\": true\n  b: 1\n",
		"spec: {url: x, b: 1}\n":           "spec: {url: x, ref: {semver: \">=1\"}, \"on\": true, b: 1}\n",
		"spec:\n  url: x":                  "spec:\n  url: x\n  ref:\n    semver: \">=1\"\n  \"on\": true",
		"spec:\n  url: x\n  ref: {a: b}\n": "",
		"spec:\n  uri: x\n":                "",
	} {
		f := Parse([]byte(before))
		d := f.documents[0]
		err := d.InsertFields(at(d.Root, "spec"), "url", fields)
		got, _, refusals := f.Apply()
		if after == "" {
			if err == nil || string(got) != before {
				t.Errorf("%q became %q", before, got)
			}
		} else if err != nil || len(refusals) > 0 || string(got) != after {
			t.Errorf("%q became\n%q, not\n%q: %v, %v", before, got, after, err, refusals)
		}
	}
}

// TestReplaceFieldMoved keeps the comments of a removed field, except those that move to another document.
func TestReplaceFieldMoved(t *testing.T) {
	const before = "spec:\n  a: # one\n    # two\n    b: c\n  d: e\n"
	for after, moved := range map[string][]string{
		"spec:\n  # one\n  # two\n  d: e\n": nil, "spec:\n  # one\n  d: e\n": {"# two"}, "spec:\n  d: e\n": {"# one", "# two"},
	} {
		f := Parse([]byte(before))
		d := f.documents[0]
		err := d.ReplaceField(at(d.Root, "spec"), "a", nil, moved...)
		if got, _, refusals := f.Apply(); err != nil || len(refusals) > 0 || string(got) != after {
			t.Errorf("%q: %q, want %q: %v, %v", moved, got, after, err, refusals)
		}
	}
}

// TestReplaceFieldRefused: a field whose text is not found stays, and there is an error.
func TestReplaceFieldRefused(t *testing.T) {
	for _, before := range []string{"? a\n", "{? a}\n", "b: &x {a: 1}\nc: *x\n", "b: 1\n", "a: &x 1\n"} {
		f := Parse([]byte(before))
		d := f.documents[0]
		mapping := d.Root
		if at(d.Root, "a") == nil && at(d.Root, "b", "a") != nil {
			mapping = at(d.Root, "b")
		}
		err := d.ReplaceField(mapping, "a", []Field{{Key: "c", Value: "d"}})
		if got, edits, _ := f.Apply(); err == nil || edits > 0 || string(got) != before {
			t.Errorf("%q became %q: %v", before, got, err)
		}
	}
}

func TestPut(t *testing.T) {
	for before, after := range map[string]string{
		"# h\na: 1\n---\nb: 2\n": "# h\na: 1\n---\nx: 1\n---\nb: 2\n",
		"a: 1":                   "a: 1\n---\nx: 1",
		"a: 1\r---\rb: 2\r":      "a: 1\r---\rx: 1\r---\rb: 2\r",
		"a: 1\r":                 "a: 1\r---\rx: 1\r",
		"\ufeffa: 1\r\n---\r\nb": "\ufeffa: 1\r\n---\r\nx: 1\r\n---\r\nb",
		"--- {a: 1}\n...\n---\n": "--- {a: 1}\n---\nx: 1\n...\n---\n",
	} {
		f := Parse([]byte(before))
		d := f.documents[0]
		d.Put(d.Text(), []byte("x: 1"))
		if got, edits, _ := f.Apply(); string(got) != after || edits != 1 {
			t.Errorf("%q became %q, not %q", before, got, after)
		}
	}
}

func TestRender(t *testing.T) {
	fields := []Field{{Key: "a", Value: "1.0"}, {Key: "b", Fields: []Field{{Key: "c", Value: "x", Comment: "# d"}}}}
	for like, want := range map[string]string{
		"":         "a: \"1.0\"\nb:\n  c: x # d\n",
		"x: y\r\n": "a: \"1.0\"\r\nb:\r\n  c: x # d\r\n",
	} {
		if got := Render(fields, []byte(like)); string(got) != want {
			t.Errorf("as %q: %q, want %q", like, got, want)
		}
	}
}

// FuzzFields replaces, removes and adds fields of any mapping: the new fields are there, the rest and all comments stay.
func FuzzFields(f *testing.F) {
	for _, text := range []string{
		"spec:\n  a: 1 # c\n  chart:\n    spec: {b: [1, 'x}']}\n  z: |\n    k\n", "{a: {b: c}, d: e}", "- a: b\n  c: d\n", "a: &x {b: c}\nd: *x\n", "a:\r\n- b # c\r\n",
		"? a\n: b\nc: \"x\\\"#\" # d\n", "a:\n  b:\n", "\ufeffé: {ü: 1} # x\n",
	} {
		f.Add([]byte(text), uint16(1), uint8(0))
		f.Add([]byte(text), uint16(3), uint8(1))
		f.Add([]byte(text), uint16(2), uint8(2))
	}
	f.Fuzz(func(t *testing.T, text []byte, choice uint16, how uint8) {
		if len(text) < 1<<12 {
			editField(t, text, choice, how)
		}
	})
}

// TestCorpusFields does the same at random places of all manifests that the scripts and examples hold.
func TestCorpusFields(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	edited, all := 0, 0
	for _, text := range corpus(t) {
		for range 2 {
			all++
			if editField(t, text, uint16(r.UintN(1<<16)), uint8(r.UintN(3))) {
				edited++
			}
		}
	}
	if edited < all/2 {
		t.Errorf("%d of %d edited: this test tests nothing", edited, all)
	}
}

// editField edits a field of a text, and reports whether it could be.
func editField(t *testing.T, text []byte, choice uint16, how uint8) bool {
	t.Helper()
	file := Parse(text)
	for _, d := range file.Documents() {
		mapping, key := anyField(d.Root, int(choice))
		if mapping == nil {
			continue
		}
		fields := []Field{{Key: "new-field", Fields: []Field{{Key: "k", Value: "1.0"}}}}
		switch how % 3 {
		case 0:
			_ = d.ReplaceField(mapping, key, fields)
		case 1:
			_ = d.ReplaceField(mapping, key, nil)
		case 2:
			_ = d.InsertFields(mapping, key, fields)
		}
		splices := d.splices
		got, edits, _ := file.Apply()
		if edits == 0 {
			if !bytes.Equal(got, text) {
				t.Fatalf("%q became %q without an edit", text, got)
			}
			return false
		}
		s := splices[0]
		if !bytes.HasPrefix(got, text[:d.offset+s.start]) || !bytes.HasSuffix(got, text[d.offset+s.end:]) {
			t.Fatalf("%q became %q", text, got)
		}
		after := Parse(got)
		if len(after.documents) != len(file.documents) {
			t.Fatalf("%q became %q: %d documents", text, got, len(after.documents))
		}
		if has := strings.Contains(string(got), "new-field"); has != (how%3 != 1) && !bytes.Contains(text, []byte("new-field")) {
			t.Fatalf("%q became %q", text, got)
		}
		return true
	}
	return false
}

func anyField(root *yaml.Node, choice int) (*yaml.Node, string) {
	var mappings []*yaml.Node
	var keys []string
	var visit func(*yaml.Node)
	visit = func(n *yaml.Node) {
		for i, c := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 0 && len(mappings) < 1000 {
				mappings, keys = append(mappings, n), append(keys, c.Value)
			}
			visit(c)
		}
	}
	if root == nil {
		return nil, ""
	}
	visit(root)
	if len(mappings) == 0 {
		return nil, ""
	}
	return mappings[choice%len(mappings)], keys[choice%len(mappings)]
}
