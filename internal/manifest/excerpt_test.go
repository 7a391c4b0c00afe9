package manifest

import (
	"strings"
	"testing"
	"time"
)

func TestExcerpt(t *testing.T) {
	const text = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmChart\nmetadata: {name: a, namespace: b}\nspec:\n" +
		"  chart: 'it''s' # why\n  version: \"a\\\"b\"\n\n  größe: größer\n  sourceRef:\n    kind: X\n  valuesFiles:\n  - one\n  text: |\n    more\n"
	tests := []struct {
		path []any
		want string
	}{
		{[]any{"spec", "chart"}, "  [chart: 'it''s'] # why"},
		{[]any{"spec", "version"}, `  [version: "a\"b"]`},
		{[]any{"spec", "größe"}, "  [größe: größer]"},
		{[]any{"spec", "sourceRef"}, "  [sourceRef]:"},
		{[]any{"spec", "sourceRef", "name"}, "  [sourceRef]:"},
		{[]any{"spec", "valuesFiles", 0}, "  - [one]"},
		{[]any{"spec", "text"}, "  [text]: |"},
		{[]any{"metadata", "namespace"}, "metadata: {name: a, [namespace: b]}"},
		{[]any{"nowhere"}, "[apiVersion]: source.toolkit.fluxcd.io/v1"},
		{nil, "[apiVersion]: source.toolkit.fluxcd.io/v1"},
	}
	s := NewSet("")
	if err := s.Add("f.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		e := s.Objects()[0].Excerpt(tt.path...)
		if got := e.Before + "[" + e.Marked + "]" + e.After; got != tt.want || e.Pos != s.Objects()[0].Position(tt.path...) {
			t.Errorf("%v: %s at %v, want %s", tt.path, got, e.Pos, tt.want)
		}
	}
}

// TestExcerptIsBounded checks that a long line is not quoted: each finding in it would keep a copy.
func TestExcerptIsBounded(t *testing.T) {
	const object = `{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmChart", "metadata": {"name": "c"}, "spec": {"chart": "`
	for length, want := range map[int]bool{100: true, maxExcerpt: false} {
		s := NewSet("")
		if err := s.Add("f.json", []byte(object+strings.Repeat("x", length)+`"}}`)); err != nil {
			t.Fatal(err)
		}
		e := s.Objects()[0].Excerpt("spec", "chart")
		if quoted := e.Marked != ""; quoted != want || e.Pos.Column == 0 {
			t.Errorf("a value of %d bytes: %v at %v", length, quoted, e.Pos)
		}
	}
}

// TestExcerptOfSecret looks for values of Secrets in lines that are quoted.
func TestExcerptOfSecret(t *testing.T) {
	const secret = `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "hunter2"}}`
	const chart = `{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmChart", "metadata": {"name": "c"}, "spec": {"chart": "x"}}`
	for name, text := range map[string]string{
		"JSON on one line":  `{"apiVersion": "v1", "kind": "List", "items": [` + secret + "," + chart + "]}",
		"flow items":        "apiVersion: v1\nkind: List\nitems: [" + secret + ", " + chart + "]\n",
		"block items":       "apiVersion: v1\nkind: List\nitems:\n- " + secret + "\n- " + chart + "\n",
		"JSON after JSON":   secret + chart,
		"a broken document": "kind: Secret\nstringData:\n  password: hunter2: x\n",
		"a broken Secret":   "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmChart\n---\napiVersion: v1\nkind: Secret\nstringData: {password: 'hunter2\n",
	} {
		s := NewSet("")
		var all []Excerpt
		if err := s.Add("f", []byte(text)); err != nil {
			all = append(all, err.(*ParseError).Excerpt())
		}
		for _, o := range s.Objects() {
			all = append(all, o.Excerpt("spec", "chart"), o.Excerpt("spec"), o.Excerpt())
		}
		if len(all) == 0 {
			t.Errorf("%s: nothing to look at", name)
		}
		for _, e := range all {
			if strings.Contains(e.Before+e.Marked+e.After, "hunter2") {
				t.Errorf("%s: %q", name, e)
			}
		}
	}
}

func TestIgnores(t *testing.T) {
	const text = `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata:
  name: a # helmsrc:ignore HS001 for the whole
spec:
  chart: a # helmsrc:ignore HS002,HS003 because
  # helmsrc:ignore HS004, HS005 two of them
  # another comment

  version: "1 # helmsrc:ignored"
  url: http://example.org/#frag # x # helmsrc:ignore HS006
`
	s := NewSet("")
	if err := s.Add("f.yaml", []byte("---\n"+text)); err != nil {
		t.Fatal(err)
	}
	type seen struct {
		line  int
		whole bool
		codes string
	}
	want := []seen{{5, true, "HS001"}, {7, false, "HS002 HS003"}, {11, false, "HS004 HS005"}, {12, false, "HS006"}}
	var got []seen
	for _, i := range s.Objects()[0].Ignores() {
		got = append(got, seen{i.Line, i.Whole, strings.Join(i.Codes, " ")})
	}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %v, want %v", got[i], want[i])
		}
	}
}

// Where something is takes no time that depends on the length of the file.
func TestPlacesOfManyVariables(t *testing.T) {
	const n = 40_000
	s := NewSet("")
	if err := s.Add("f.yaml", []byte("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a}\nspec:\n  values:\n    list:\n"+
		strings.Repeat("    - ${A} and some forty more characters in each line\n", n))); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	found := s.Objects()[0].Unresolved()
	if len(found) != n || found[n-1].Pos.Line != 6+n {
		t.Errorf("%d variables", len(found))
	}
	if took := time.Since(start); took > 8*time.Second {
		t.Errorf("it took %v", took)
	}
}
