package admission

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// What a shape accepts, the API server's validator allows; what it knows, and which defaults it sets, is the same. And it
// accepts what people write.
func TestShape(t *testing.T) {
	const rounds = 4000
	for _, kind := range slices.Sorted(maps.Keys(schemas)) {
		t.Run(kind, func(t *testing.T) {
			s, err := schemaOf(kind)
			if err != nil {
				t.Fatal(err)
			}
			valid := admittedExample(t, kind)
			if !s.shape.accepts(valid) {
				t.Fatalf("does not accept %v", valid)
			}
			r := rand.New(rand.NewPCG(1, uint64(len(kind))))
			var accepted, refused int
			for range rounds {
				value := mutated(r, s.shape, runtime.DeepCopyJSON(valid)).(map[string]any)
				wantSameKnown(t, s, value)
				wantSameDefaults(t, s, value)
				if !s.shape.accepts(value) {
					refused++
					continue
				}
				accepted++
				wantAllowed(t, s, value)
			}
			if accepted < rounds/20 || refused < rounds/20 {
				t.Errorf("%d accepted, %d not: the mutations say little", accepted, refused)
			}
		})
	}
}

func serverOf(t *testing.T, s *schema) *serverSchema {
	t.Helper()
	server, err := s.server()
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func wantSameKnown(t *testing.T, s *schema, value map[string]any) {
	t.Helper()
	track := structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	unknown := pruning.PruneWithOptions(runtime.DeepCopyJSON(value), serverOf(t, s).structural, true, track)
	if s.knows(value) != (len(unknown) == 0) {
		t.Errorf("knows %v: %t, unknown are %q", value, s.knows(value), unknown)
	}
}

func wantSameDefaults(t *testing.T, s *schema, value map[string]any) {
	t.Helper()
	if hasNull(value) {
		return
	}
	want, got := runtime.DeepCopyJSON(value), runtime.DeepCopyJSON(value)
	defaulting.Default(want, serverOf(t, s).structural)
	if s.setDefaults(got); !reflect.DeepEqual(got, want) {
		t.Errorf("defaults\n got %v\nwant %v", got, want)
	}
}

func wantAllowed(t *testing.T, s *schema, value map[string]any) {
	t.Helper()
	if errs := validation.ValidateCustomResource(nil, value, serverOf(t, s).validator); len(errs) > 0 {
		t.Errorf("accepts %v: %v", value, errs.ToAggregate())
	}
}

// admittedExample is a valid object of a kind, with defaults.
func admittedExample(t *testing.T, kind string) map[string]any {
	t.Helper()
	text := of(kind, specs[kind])
	if strings.Contains(kind, ".") {
		text = operatedExample(kind)
	}
	if kind == releaseKind {
		text = strings.Replace(of(kind, `
interval: 5m
timeout: 1m
values: {replicas: 2, cpu: 0.5, list: [1, a, null]}
valuesFrom: [{kind: Secret, name: s, optional: true}]
dependsOn: [{name: other}]
install: {remediation: {retries: 3}}
chart: {spec: {chart: podinfo, version: 6.x, valuesFiles: [a.yaml], sourceRef: {kind: HelmRepository, name: podinfo}}}`),
			"source.toolkit.fluxcd.io/v1", "helm.toolkit.fluxcd.io/v2", 1)
	}
	var obj *manifest.Object
	if kind == "Kustomization" {
		obj = kustomization(t, kustomizationSpec+"path: ./apps\npostBuild: {substitute: {A: b}, substituteFrom: [{kind: Secret, name: s, optional: true}]}\ndependsOn: [{name: other}]\n")
	} else {
		obj = object(t, text)
	}
	adm, err := Admit(obj)
	if err != nil {
		t.Fatal(err)
	}
	return adm.Content
}

// mutated changes one value somewhere, to one that the schema may or may not allow.
func mutated(r *rand.Rand, s *shape, value any) any {
	switch v := value.(type) {
	case map[string]any:
		if len(v) > 0 && r.IntN(6) > 0 {
			name := anyName(r, slices.Sorted(maps.Keys(v)))
			v[name] = mutated(r, fieldOf(s, name), v[name])
			return v
		}
		return mutatedFields(r, s, v)
	case []any:
		if len(v) > 0 && r.IntN(3) > 0 {
			i := r.IntN(len(v))
			v[i] = mutated(r, itemOf(s), v[i])
			return v
		}
		return append(v, anything(r, itemOf(s)))
	}
	return anything(r, s)
}

func mutatedFields(r *rand.Rand, s *shape, fields map[string]any) map[string]any {
	if len(fields) > 0 && r.IntN(3) == 0 {
		delete(fields, anyName(r, slices.Sorted(maps.Keys(fields))))
		return fields
	}
	name := "unknown"
	if s != nil && len(s.Properties) > 0 && r.IntN(8) > 0 {
		name = anyName(r, slices.Sorted(maps.Keys(s.Properties)))
	}
	fields[name] = anything(r, fieldOf(s, name))
	return fields
}

func fieldOf(s *shape, name string) *shape {
	if s == nil {
		return nil
	}
	if field := s.Properties[name]; field != nil {
		return field
	}
	return s.AdditionalProperties
}

func itemOf(s *shape) *shape {
	if s == nil {
		return nil
	}
	return s.Items
}

func anyName(r *rand.Rand, names []string) string { return names[r.IntN(len(names))] }

// anything is mostly a value of the type that the schema wants.
func anything(r *rand.Rand, s *shape) any {
	if s == nil || r.IntN(5) == 0 {
		return []any{nil, "", "text", "5m", int64(7), 1.5, true, map[string]any{}, []any{}, []any{"x"}, map[string]any{"x": "y"}, []any{map[string]any{"x": "y"}}}[r.IntN(12)]
	}
	switch s.Type {
	case "object":
		fields := map[string]any{}
		for _, name := range s.Required {
			fields[name] = anything(r, s.Properties[name])
		}
		return mutatedFields(r, s, fields)
	case "array":
		return []any{anything(r, s.Items), anything(r, s.Items)}
	case "boolean":
		return r.IntN(2) == 0
	case "integer":
		return int64(r.IntN(100) - 50)
	}
	if len(s.Enum) > 0 {
		return s.Enum[r.IntN(len(s.Enum))]
	}
	return []string{"", "x", "5m", "1h30m", "sha256:00", "https://example.com", "oci://example.com/a", "é", strings.Repeat("é", 300), "a/b", "HelmChart"}[r.IntN(11)]
}

// Every schema is made of keywords that shapes know.
func TestShapes(t *testing.T) {
	for kind := range schemas {
		data, err := crds.ReadFile(schemaFile(kind))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := shapeOf(data); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, err := shapeOf([]byte(`{"type": "object", "maxProperties": 3}`)); err == nil {
		t.Error("a keyword that shapes do not know is passed over")
	}
}
