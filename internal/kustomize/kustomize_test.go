package kustomize

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// textsOf returns files below a directory /k, which is not the root: kustomizations may name files beside it.
func textsOf(files map[string]string) Texts {
	t := Texts{}
	for name, text := range files {
		t[filepath.Join("/", filepath.FromSlash(name))] = []byte(text)
	}
	return t
}

// built builds /k.
func built(t *testing.T, texts Texts) ([]map[string]any, []string, error) {
	t.Helper()
	k, file, err := texts.Kustomization("/k")
	if err != nil {
		return nil, nil, err
	}
	b := &Build{Source: texts, Budget: NewBudget(func(error) {}), What: "k"}
	objects, err := b.Run(t.Context(), "/k", file, k)
	if err != nil {
		return nil, nil, err
	}
	var contents []map[string]any
	var files []string
	for _, o := range objects {
		content, err := o.Content()
		if err != nil {
			return nil, nil, err
		}
		contents, files = append(contents, content), append(files, filepath.ToSlash(o.File))
	}
	return contents, files, nil
}

// byKustomize builds /k with kustomize itself.
func byKustomize(t *testing.T, texts Texts) (contents []map[string]any, err error) {
	t.Helper()
	disk := filesys.MakeFsInMemory()
	for name, text := range texts {
		if err := disk.WriteFile(name, text); err != nil {
			t.Fatal(err)
		}
	}
	openapi.ResetOpenAPI()
	defer func() { // the next build begins without a schema
		openapi.ResetOpenAPI()
		builtIn = false
	}()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsNone
	options.PluginConfig = types.DisabledPluginConfig()
	options.Reorder = krusty.ReorderOptionNone
	m, err := krusty.MakeKustomizer(options).Run(disk, "/k")
	if err != nil {
		return nil, err
	}
	for _, r := range m.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			return nil, err
		}
		var content map[string]any
		if err := sigsyaml.Unmarshal(text, &content); err != nil {
			return nil, err
		}
		contents = append(contents, content)
	}
	return contents, nil
}

// same compares a build with that of kustomize, and returns kustomize's error.
func same(t *testing.T, texts Texts) error {
	t.Helper()
	want, wantErr := byKustomize(t, texts)
	got, _, err := built(t, texts)
	switch {
	case (err == nil) != (wantErr == nil):
		t.Errorf("error %v\nof kustomize %v", err, wantErr)
	case err == nil && !reflect.DeepEqual(plain(t, got), plain(t, want)):
		t.Errorf("built:\n%s\nby kustomize:\n%s", text(got), text(want))
	}
	return wantErr
}

func plain(t *testing.T, v any) (out any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func text(objects []map[string]any) string {
	var b strings.Builder
	for _, o := range objects {
		data, _ := sigsyaml.Marshal(o)
		b.WriteString("---\n" + string(data))
	}
	return b.String()
}

// TestScenarios builds the trees in testdata, one in each file, and compares the result with kustomize's. A comment that begins
// with "error" marks a tree that kustomize refuses.
func TestScenarios(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			archive := txtar.Parse(data)
			files := map[string]string{}
			for _, f := range archive.Files {
				files[f.Name] = string(f.Data)
			}
			failed := same(t, textsOf(files))
			if refused := strings.HasPrefix(string(archive.Comment), "error"); (failed != nil) != refused {
				t.Errorf("kustomize refuses it: %v", failed)
			}
		})
	}
}

// TestBuiltIn: the built-in schema is allowed for objects of all groups in it, wherever they are in a document, and not for those
// of Flux.
func TestBuiltIn(t *testing.T) {
	openapi.ResetOpenAPI()
	defer openapi.ResetOpenAPI()
	groups := map[string]bool{}
	for _, definition := range openapi.Schema().Definitions {
		var types []struct{ Group, Version string }
		if err := definition.Extensions.GetObject("x-kubernetes-group-version-kind", &types); err != nil {
			t.Fatal(err)
		}
		for _, known := range types {
			groups[strings.TrimPrefix(known.Group+"/"+known.Version, "/")] = true
		}
	}
	if len(groups) < 30 {
		t.Fatalf("the schema has %d versions", len(groups))
	}
	for version := range groups {
		for _, text := range []string{"{apiVersion: %s, kind: A}", "a: [{b: {kind: A, apiVersion: %s}}]"} {
			if !needsBuiltIn(objectNode(t, fmt.Sprintf(text, version))) {
				t.Errorf("%s in %s does not need the schema", version, text)
			}
		}
	}
	for text, want := range map[string]bool{
		"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nspec: {apiVersion: v1, chartRef: {kind: Pod}}": false,
		"a: b # {\"$imagepolicy\": \"flux-system:app\"}":                                                          false,
		"a: b # {\"$ref\": \"#/definitions/x\"}":                                                                  true,
		"a: &a {apiVersion: v1}\nb: {<<: *a, kind: Pod}":                                                          true,
		"# {\"$openapi\": \"x\"}\na: b":                                                                           true,
	} {
		if got := needsBuiltIn(objectNode(t, text)); got != want {
			t.Errorf("%s: needs the schema: %t", text, got)
		}
	}
}

// TestSuppressed: a patch for objects of Flux does not parse the built-in schema.
func TestSuppressed(t *testing.T) {
	release := "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a}\nspec: {interval: 1h}\n"
	for with, want := range map[string]bool{"": false, "- target: {kind: HelmRelease}\n  patch: |\n    apiVersion: v1\n    kind: any\n    metadata: {name: any}\n    spec: {timeout: 1m}": false,
		"- patch: |\n    apiVersion: v1\n    kind: Namespace\n    metadata: {name: n, labels: {a: b}}": true} {
		openapi.ResetOpenAPI()
		builtIn = false
		_, _, err := built(t, textsOf(map[string]string{
			"k/kustomization.yaml": "resources: [release.yaml]\npatches:\n- path: patch.yaml\n" + with,
			"k/release.yaml":       release + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n",
			"k/patch.yaml":         strings.Replace(release, "1h", "2h", 1),
		}))
		if known := openapi.SchemaForResourceType(kyaml.TypeMeta{APIVersion: "v1", Kind: "Pod"}) != nil; err != nil || known != want {
			t.Errorf("%s: the schema is known: %t, %v", with, known, err)
		}
	}
}

// TestEarlierBuild: a schema that a kustomization names does not depend on earlier builds.
func TestEarlierBuild(t *testing.T) {
	texts := textsOf(map[string]string{
		"k/kustomization.yaml": "resources: [pod.yaml]\nopenapi: {path: schema.json}\npatches:\n- patch: |\n    apiVersion: v1\n    kind: Pod\n    metadata: {name: p}\n    spec: {containers: [{name: b}]}\n",
		"k/pod.yaml":           "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a}]}\n",
		"k/schema.json":        `{"definitions": {}}`,
	})
	want, err := byKustomize(t, texts)
	if err != nil {
		t.Fatal(err)
	}
	earlier := maps.Clone(texts)
	file := filepath.Join("/k", "kustomization.yaml")
	earlier[file] = bytes.ReplaceAll(texts[file], []byte("openapi: {path: schema.json}\n"), nil)
	if _, _, err := built(t, earlier); err != nil {
		t.Fatal(err)
	}
	if got, _, err := built(t, texts); err != nil || !reflect.DeepEqual(plain(t, got), plain(t, want)) {
		t.Errorf("%v\nbuilt:\n%s\nby kustomize:\n%s", err, text(got), text(want))
	}
}

func objectNode(t *testing.T, text string) *yaml.Node {
	t.Helper()
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text), &n); err != nil {
		t.Fatal(err)
	}
	return &n
}

// TestManyKeys counts the allocations of a comparison of all keys with each other: the YAML library makes a message for each
// equal pair.
func TestManyKeys(t *testing.T) {
	allocated := func(keys int) float64 {
		object := Object{res: objectsOf(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n"+strings.Repeat("  key: value\n", keys))[0]}
		return testing.AllocsPerRun(1, func() {
			if _, err := object.Content(); err == nil || err.Error() != "yaml: unmarshal errors:\n  line 6: mapping key \"key\" already defined at line 5" {
				t.Errorf("%d keys: %v", keys, err)
			}
		})
	}
	if few, many := allocated(30), allocated(120); many > few+100 {
		t.Errorf("with four times the keys an object allocates %v times, not %v", many, few)
	}
}

// TestDecoded compares decoded values with the library's.
func TestDecoded(t *testing.T) {
	for _, text := range []string{
		"a: {b: [c, 1, 1.5, ~, true, yes, '1', \"\", !!str 2, !x y, 0o17, 017, 0xff, 1_000, 2020-01-01, !!binary YQ==, 18446744073709551615]}",
		"{1: a, true: b, 1.5: c, ~: d, 2020-01-01: e, 'f': ~, yes: g}", "a: {1: b}", "a: {~: b}", "a: {[b]: c}", "[a]: b", "a: .nan", "a: {b: c, 'b': d}", "a: []\nb: {}\nc:", "a: !!binary '?'", "a: !!int b",
	} {
		var n yaml.Node
		if err := yaml.Unmarshal([]byte(text), &n); err != nil {
			t.Fatal(err)
		}
		var library map[string]any
		errWant := n.Decode(&library)
		asJSON, errJSON := json.Marshal(library)
		if errWant = errors.Join(errWant, errJSON); errWant == nil {
			errWant = utiljson.Unmarshal(asJSON, &library)
		}
		got, err := decoded(n.Content[0], true)
		if (err != nil) != (errWant != nil) || err == nil && !reflect.DeepEqual(got, any(library)) {
			t.Errorf("%s: %v, %v, not %v, %v", text, got, err, library, errWant)
		}
	}
}

func objectsOf(t *testing.T, text string) []*resource.Resource {
	t.Helper()
	objects, err := (&Build{Budget: NewBudget(func(error) {}), What: "k"}).Objects([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}
