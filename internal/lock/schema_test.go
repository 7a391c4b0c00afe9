package lock

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// TestSchema compares the published schema with an entry that has every field, and with the existing fields.
func TestSchema(t *testing.T) {
	file, err := os.Open(filepath.Join("..", "..", "schema", "lock.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	document, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("lock.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("lock.json")
	if err != nil {
		t.Fatal(err)
	}
	e := podinfo()
	e.Cluster, e.File, e.Published, e.Tag, e.ManifestDigest, e.LayerDigest = "clusters/east", "apps/podinfo.yaml", "2026-01-02T03:04:05Z", "6.5.0", sha2, sha3
	e.Revision, e.Package, e.ValuesFiles, e.Signers = "main@sha1:1", sha3, []File{{Name: "values.yaml", Digest: sha1}, {Name: "absent.yaml"}}, []string{"cosign cosign.pub"}
	e.Dependencies[0].URL, e.Dependencies[0].ManifestDigest = "oci://registry.example.com/redis:18.1.0", sha1
	for i, v := 0, reflect.ValueOf(e); i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not tried", v.Type().Field(i).Name)
		}
	}
	value := asJSON(t, written(t, e))
	if err := schema.Validate(value); err != nil {
		t.Error(err)
	}
	if err := schema.Validate(asJSON(t, written(t))); err != nil {
		t.Error(err)
	}
	wrong := strings.Replace(string(written(t, e)), "sourceKind", "sourcekind", 1)
	if schema.Validate(asJSON(t, []byte(wrong))) == nil {
		t.Error("the schema accepts a field that there is not")
	}
}

func asJSON(t *testing.T, content []byte) any {
	t.Helper()
	var value any
	if err := yaml.Unmarshal(content, &value); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
