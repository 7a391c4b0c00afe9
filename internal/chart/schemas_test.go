package chart

import (
	"errors"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

// A schema that leads out of itself is refused, in whatever way it does.
func TestCheckSchemas(t *testing.T) {
	t.Parallel()
	for text, stays := range map[string]bool{
		`{}`: true, `true`: true, `[`: true,
		`{"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "definitions": {"a": {}}}`: true,
		`{"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": {"a": {"$dynamicRef": "#b"}}}`:          true,
		`{"$id": "https://example.org/a.json", "$ref": "#/$defs/a", "$defs": {"a": {}}}`:                              true,
		`{"$id": "https://example.org/a.json", "$ref": "b.json", "$defs": {"b": {"$id": "b.json"}}}`:                  true,
		`{"$ref": "https://example.org/b.json#/x", "$defs": {"b": {"$id": "https://example.org/b.json"}}}`:            true,
		`{"$schema": "http://json-schema.org/draft-04/schema#", "$ref": "b", "definitions": {"b": {"id": "b"}}}`:      true,
		`{"properties": {"$ref": {"type": "string"}, "$schema": {}, "id": {}}}`:                                       true,
		`{"properties": {"a": {"$ref": "http://json-schema.org/draft-07/schema#"}}}`:                                  true,
		`{"$ref": "values.schema.json#/$defs/a", "$defs": {"a": {}}}`:                                                 true,

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
			var refused *SchemaReferenceError
			return errors.As(CheckSchemas(c), &refused)
		}
		sub := &helmchart.Chart{Metadata: &helmchart.Metadata{Name: "sub"}, Schema: []byte(text)}
		c := &helmchart.Chart{Metadata: &helmchart.Metadata{Name: "app"}}
		c.AddDependency(sub)
		if leads(sub) == stays || leads(c) == stays {
			t.Errorf("%s: %v, %v", text, CheckSchemas(sub), CheckSchemas(c))
		}
	}
}
