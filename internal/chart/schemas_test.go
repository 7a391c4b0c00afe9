package chart

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	helmchart "helm.sh/helm/v3/pkg/chart"

	"github.com/helmsrc/helmsrc/internal/bound"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// A schema that refers to something outside of itself is refused, with every keyword.
func TestCheckSchemas(t *testing.T) {
	t.Parallel()
	for text, stays := range map[string]bool{
		`{}`: true, `true`: true, `[`: true,
		`{"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "definitions": {"a": {}}}`:                                                                                              true,
		`{"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": {"a": {"$dynamicRef": "#b"}}}`:                                                                                                       true,
		`{"$id": "https://example.org/a.json", "$ref": "#/$defs/a", "$defs": {"a": {}}}`:                                                                                                                           true,
		`{"$id": "https://example.org/a.json", "$ref": "b.json", "$defs": {"b": {"$id": "b.json"}}}`:                                                                                                               true,
		`{"$ref": "https://example.org/b.json#/x", "$defs": {"b": {"$id": "https://example.org/b.json"}}}`:                                                                                                         true,
		`{"$schema": "http://json-schema.org/draft-04/schema#", "$ref": "b", "definitions": {"b": {"id": "b"}}}`:                                                                                                   true,
		`{"properties": {"$ref": {"type": "string"}, "$schema": {}, "id": {}}}`:                                                                                                                                    true,
		`{"properties": {"a": {"$ref": "http://json-schema.org/draft-07/schema#"}}}`:                                                                                                                               true,
		`{"$ref": "values.schema.json#/$defs/a", "$defs": {"a": {}}}`:                                                                                                                                              true,
		`{"$ref": "urn:example:a", "$schema": "URN:b"}`:                                                                                                                                                            true,
		`{"default": {"$ref": "http://a.b/c"}, "not": {"$ref": "#/properties/a", "examples": [{"$ref": "http://a.b/c"}]}, "properties": {"a": {"enum": [{"$ref": "x"}], "const": {"$id": "a?", "$schema": "x"}}}}`: true,

		`{"$id": "https://a.b/c/d", "$ref": "https://a.b/c/d#/x"}`:                                                                true,
		`{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://a.b/c", "$ref": "https://a.b/c"}`:            true,
		`{"$id": "https://a.b/c", "$defs": {"d": {"$id": "https://e.f/d", "not": {"$ref": "g"}}, "g": {"$id": "https://e.f/g"}}}`: true,
		`{"not": {"$id": "", "$ref": "b"}, "$defs": {"b": {"$id": "b"}}}`:                                                         true,
		`{"title": "default", "default": {"$ref": "http://a.b/c"}}`:                                                               true,
		`{"not": {"$ref": "#"}, "default": {"$ref": "http://a.b/c"}}`:                                                             true,
		`{"not": {"not": {"$ref": "#/not"}}, "default": {"$ref": "http://a.b/c"}}`:                                                true,

		`{"$id": "https://a.b/c", "$defs": {"d": {"$id": "d"}}, "not": {"$id": "http://e.f/", "$ref": "d"}}`:                                                                         false,
		`{"$schema": "http://json-schema.org/draft-04/schema#", "definitions": {"d": {"id": "d"}}, "not": {"id": "http://e.f/", "not": {"$ref": "d"}}}`:                              false,
		`{"$id": "https://a.b/c", "$defs": {"d": {"$id": "http://e.f/d", "not": {"$ref": "g"}}, "g": {"$id": "g"}}}`:                                                                 false,
		`{"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"b": {"$id": "http://a.b/c", "$ref": "#/definitions/d"}, "d": {}}, "not": {"$ref": "http://a.b/c"}}`: false,
		`{"$defs": {"b": {"$schema": "http://json-schema.org/draft-04/schema#", "$id": "http://a.b/c"}}, "not": {"$ref": "http://a.b/c"}}`:                                           false,
		`{"$id": "mailto:a"}`: false,
		`{"allOf": [{"$ref": "#/default"}], "default": {"$ref": "http://a.b/c"}}`: false,

		`{"properties": {"default": {"$ref": "http://a.b/c"}}}`:                                         false,
		`{"$ref": "#/properties", "properties": {"properties": {"default": {"$ref": "http://a.b/c"}}}}`: false,
		`{"not": {"$ref": "#/%64efault"}, "default": {"$ref": "http://a.b/c"}}`:                         false,
		`{"$ref": "#a", "default": {"$id": "#a", "not": {"$ref": "http://a.b/c"}}}`:                     false,

		`{"$ref": "http://example.org/a.json"}`:                                                                     false,
		`{"allOf": [{"properties": {"a": {"$ref": "https://example.org/a.json#/b"}}}]}`:                             false,
		`{"$ref": "file:///etc/passwd"}`:                                                                            false,
		`{"$ref": "../other.json"}`:                                                                                 false,
		`{"$ref": "//example.org/a"}`:                                                                               false,
		`{"$id": "http://example.org/a.json", "$ref": "b.json"}`:                                                    false,
		`{"$id": "http://example.org/a?", "$ref": "#/$defs/a", "$defs": {"a": {}}}`:                                 false,
		`{"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://example.org/", "not": {"$ref": "b"}}`: false,
		`{"$dynamicRef": "http://example.org/a"}`:                                                                   false,
		`{"$recursiveRef": "http://example.org/a"}`:                                                                 false,
		`{"$schema": "http://example.org/draft"}`:                                                                   false,
		`{"$schema": "http://json-schema.org/draft-03/schema#"}`:                                                    false,
		`{"$ref": "#/default", "default": {"$ref": "http://example.org/a"}}`:                                        false,
		`{"$ref": "http://example.org/b", "default": {"$id": "http://example.org/b"}}`:                              false,
		`{"$schema": "http://json-schema.org/draft-07/schema#", "not": {"$ref": "http://a.b/c"}, "$defs": {"a": {"$id": "http://a.b/c"}}}`: false,
		`{"not": {"$ref": "http://a.b/c"}, "definitions/x": {"$id": "http://a.b/c"}}`:                                                      false,
	} {
		leads := func(c *helmchart.Chart) bool {
			return finding.CodeOf(CheckSchemas(c)) == finding.SchemaReference
		}
		sub := &helmchart.Chart{Metadata: &helmchart.Metadata{Name: "sub"}, Schema: []byte(text)}
		c := &helmchart.Chart{Metadata: &helmchart.Metadata{Name: "app"}}
		c.AddDependency(sub)
		if leads(sub) == stays || leads(c) == stays {
			t.Errorf("%s: %v, %v", text, CheckSchemas(sub), CheckSchemas(c))
		}
	}
}

// TestLongSchema: a schema of more values than a program should decode is not decoded.
func TestLongSchema(t *testing.T) {
	t.Parallel()
	c := &helmchart.Chart{Metadata: &helmchart.Metadata{Name: "app"}, Schema: []byte("[" + strings.Repeat("0,", bound.MaxValues) + "0]")}
	if !errors.Is(CheckSchemas(c), bound.ErrValues) {
		t.Error("it was decoded")
	}
}

// asked is a loader that records the URLs that Helm would read from files and servers.
type asked struct{ urls []string }

func (a *asked) Load(url string) (any, error) {
	if !strings.HasPrefix(url, urn) {
		a.urls = append(a.urls, url)
	}
	return true, nil
}

// FuzzCheckSchemas compares CheckSchemas with the library with which Helm reads schemas: for an accepted schema, the
// library loads no other document.
func FuzzCheckSchemas(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		text, err := json.Marshal(randomSchema(r, 4))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c := &helmchart.Chart{Metadata: &helmchart.Metadata{Name: "app"}, Schema: text}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil || CheckSchemas(c) != nil {
			return
		}
		var loader asked
		compiler := jsonschema.NewCompiler()
		compiler.UseLoader(&loader)
		if err := compiler.AddResource("file:///values.schema.json", document); err != nil {
			t.Fatal(err)
		}
		_, _ = compiler.Compile("file:///values.schema.json")
		if len(loader.urls) > 0 {
			t.Errorf("%s: %q", text, loader.urls)
		}
	})
}

// randomSchema makes a schema of few names, so that they meet.
func randomSchema(r *rand.Rand, depth int) any {
	if depth == 0 {
		return r.IntN(2) == 0
	}
	schema := map[string]any{}
	for range 1 + r.IntN(3) {
		switch name := oneOf(r, "properties", "definitions", "$defs", "dependentSchemas", "default", "const", "examples", "allOf", "not", "other", "$ref", "$ref", "$dynamicRef", "$id", "id", "$anchor", "$schema"); name {
		case "properties", "definitions", "$defs", "dependentSchemas":
			named := map[string]any{}
			for range 1 + r.IntN(2) {
				named[oneOf(r, "a", "default", "properties", "$ref")] = randomSchema(r, depth-1)
			}
			schema[name] = named
		case "examples", "allOf":
			schema[name] = []any{randomSchema(r, depth-1)}
		case "default", "const", "not", "other":
			schema[name] = randomSchema(r, depth-1)
		case "$ref", "$dynamicRef":
			schema[name] = oneOf(r, "#", "#/$defs/a", "#/definitions/a", "#/properties", "#/properties/default", "#/default", "#/other", "#/examples/0", "#/not/default", "#a", "a", "a#/default", "http://a.test/a", "http://a.test/b", "urn:a")
		case "$id", "id":
			schema[name] = oneOf(r, "a", "#a", "http://a.test/a", "urn:a", "b/")
		case "$anchor":
			schema[name] = "a"
		case "$schema":
			schema[name] = oneOf(r, "http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema", "http://a.test/a")
		}
	}
	return schema
}

// oneOf chooses a text.
func oneOf(r *rand.Rand, texts ...string) string { return texts[r.IntN(len(texts))] }
