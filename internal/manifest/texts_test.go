package manifest

import (
	"slices"
	"strings"
	"testing"
)

// TestIgnoresInTexts has marks in texts, which say quiet, and in comments, which say loud.
func TestIgnoresInTexts(t *testing.T) {
	const head = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmChart\nmetadata:\n  name: a\n"
	for name, text := range map[string]string{
		"literal":            "a: |\n  # M quiet\n\n  x # M quiet\nb: 1 # M loud\n",
		"folded":             "a: >-\n    x # M quiet\n    # M quiet\n  # M loud\nb: 1\n",
		"in a list":          "a:\n- |+\n  # M quiet\n- x: |\n    # M quiet\n   # M loud\n  y: 1 # M loud\n",
		"explicit depth":     "a: |2-\n     # M quiet\n  # M quiet\n # M loud\nb: 1\n",
		"header":             "a: | # M loud\n  x\n",
		"empty":              "a: |\nb: 1 # M loud\n# M loud\n",
		"empty, with blanks": "a: |\n\n  \n# M loud\nb: 1 # M loud\n",
		"last":               "a: |\n  x # M quiet",
		"double quotes":      "a: \"x # M quiet \\\" # M quiet\" # M loud\n",
		"single quotes":      "a: 'x # M quiet '' # M quiet' # M loud\n",
		"over lines":         "a: \"x\n  # M quiet\n  y\" # M loud\nb: 'x\n  # M quiet' # M loud\n",
		"keys":               "\"a # M quiet\": 1 # M loud\n? |\n  # M quiet\n: 1 # M loud\n",
		"flow":               "a: [\"ä # M quiet\", 'ö # M quiet', x] # M loud\n",
		"anchor and tag":     "a: &x !!str \"x # M quiet\" # M loud\nb: *x # M loud\n",
		"plain":              "a: x # M loud\nb: it's # M loud\nc: 1 \"2\" # M loud\n",
		"carriage returns":   "a: |\r\n  # M quiet\r\nb: 'x # M quiet' # M loud\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := NewSet("")
			if err := s.Add("f.yaml", []byte(head+strings.ReplaceAll(text, "# M", "# "+ignoreMark))); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, i := range s.Objects()[0].Ignores() {
				got = append(got, i.Codes...)
			}
			if want := slices.Repeat([]string{"loud"}, strings.Count(text, "loud")); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestManyIgnores would take minutes if each text were looked for from the start.
func TestManyIgnores(t *testing.T) {
	var b strings.Builder
	b.WriteString("apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmChart\nmetadata:\n  name: a\nspec: [")
	for range 50_000 {
		b.WriteString(`"x", `)
	}
	b.WriteString("]\nmore:\n")
	for range 20_000 {
		b.WriteString("- 'x' # " + ignoreMark + " HS001\n")
	}
	s := NewSet("")
	if err := s.Add("f.yaml", []byte(b.String())); err != nil {
		t.Fatal(err)
	}
	if n := len(s.Objects()[0].Ignores()); n != 20_000 {
		t.Errorf("%d comments", n)
	}
}
