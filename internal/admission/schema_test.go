package admission

import (
	"cmp"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// server is a schema in the API server's own code.
type server struct {
	structural *structural.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

func serverOf(t *testing.T, kind string) *server {
	t.Helper()
	data, err := crds.ReadFile(cmp.Or(schemas[kind].file, operatorSchemas[kind].file))
	if err != nil {
		t.Fatal(err)
	}
	var external apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(data, &external); err != nil {
		t.Fatal(err)
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, &internal, nil); err != nil {
		t.Fatal(err)
	}
	s := new(server)
	if s.structural, err = structural.NewStructural(&internal); err != nil {
		t.Fatal(err)
	}
	if s.validator, _, err = validation.NewSchemaValidator(&internal); err != nil {
		t.Fatal(err)
	}
	s.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
	return s
}

// TestServer compares a schema with the API server's own code: unknown fields, defaults, nulls, errors and rules of thousands
// of objects that are one or more mistakes away from a valid one.
func TestServer(t *testing.T) {
	const rounds = 1500
	for _, kind := range slices.Sorted(maps.Keys(schemas)) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, err := schemas[kind].schema()
			if err != nil {
				t.Fatal(err)
			}
			valid, judge := admittedExample(t, kind), serverOf(t, kind)
			if errs := s.check(nil, valid); len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			r := rand.New(rand.NewPCG(1, uint64(len(kind))))
			var unknown, valued, broken, holding int
			for range rounds {
				value := runtime.DeepCopyJSON(valid)
				for range 1 + r.IntN(3) {
					value = mutated(r, s, value).(map[string]any)
				}
				if judge.wantSameUnknown(t, s, value) > 0 {
					unknown++
				}
				judge.wantSameDefaults(t, s, value)
				errs := judge.wantSameErrors(t, s, value)
				if len(errs) > 0 {
					valued++
				}
				if slices.ContainsFunc(errs, isBlocking) || judge.rules == nil {
					continue
				}
				if judge.wantSameBroken(t, s, value) > 0 {
					broken++
				} else {
					holding++
				}
			}
			if least := rounds / 50; unknown < least || valued < least || judge.rules != nil && holding < least {
				t.Errorf("of %d objects %d have unknown fields, %d errors, %d break a rule and %d do not: that says little", rounds, unknown, valued, broken, holding)
			}
		})
	}
}

func (j *server) wantSameUnknown(t *testing.T, s *schema, value map[string]any) int {
	t.Helper()
	track := structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	want := pruning.PruneWithOptions(runtime.DeepCopyJSON(value), j.structural, true, track)
	if got := s.unknown(value); !slices.Equal(got, want) {
		t.Errorf("unknown fields of %v:\n got %q\nwant %q", value, got, want)
	}
	return len(want)
}

func (j *server) wantSameDefaults(t *testing.T, s *schema, value map[string]any) {
	t.Helper()
	want, got := runtime.DeepCopyJSON(value), runtime.DeepCopyJSON(value)
	defaulting.PruneNonNullableNullsWithoutDefaults(want, j.structural)
	defaulting.Default(want, j.structural)
	if s.setDefaults(got); !reflect.DeepEqual(got, want) {
		t.Errorf("defaults of %v:\n got %v\nwant %v", value, got, want)
	}
	maps.Copy(value, want)
}

func (j *server) wantSameErrors(t *testing.T, s *schema, value map[string]any) field.ErrorList {
	t.Helper()
	want := validation.ValidateCustomResource(nil, value, j.validator)
	wantSameList(t, value, s.check(nil, value), want)
	return want
}

func (j *server) wantSameBroken(t *testing.T, s *schema, value map[string]any) int {
	t.Helper()
	want, _ := j.rules.Validate(t.Context(), nil, j.structural, runtime.DeepCopyJSON(value), nil, celconfig.RuntimeCELCostBudget)
	wantSameList(t, value, s.checkRules(nil, value), want)
	return len(want)
}

func wantSameList(t *testing.T, value map[string]any, got, want field.ErrorList) {
	t.Helper()
	if g, w := texts(got), texts(want); !slices.Equal(g, w) {
		t.Errorf("errors of %v:\n got %q\nwant %q", value, g, w)
	}
}

func texts(errs field.ErrorList) []string {
	var list []string
	for _, e := range errs {
		list = append(list, e.Error())
	}
	slices.Sort(list)
	return list
}

// TestRules evaluates each rule with each combination of the fields that it checks.
func TestRules(t *testing.T) {
	tried := map[string][2]int{}
	all := maps.Clone(schemas)
	maps.Copy(all, operatorSchemas)
	for kind, k := range all {
		s, err := k.schema()
		if err != nil {
			t.Fatal(err)
		}
		judge, r := serverOf(t, kind), rand.New(rand.NewPCG(3, uint64(len(kind))))
		for range 1000 {
			spec := ruled(r, s.field("spec")).(map[string]any)
			value := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": anyName(r, []string{"x", "flux"})}, "spec": spec}
			s.setDefaults(value)
			judge.wantSameBroken(t, s, value)
			countRules(s, value, tried)
		}
	}
	for text := range rules {
		if n := tried[text]; n[0] == 0 || n[1] == 0 {
			t.Errorf("%s: broken %d times, holds %d times", text, n[0], n[1])
		}
	}
}

func countRules(s *schema, value any, tried map[string][2]int) {
	if list, ok := value.([]any); ok {
		for _, e := range list {
			countRules(s.items(), e, tried)
		}
	}
	v, ok := value.(map[string]any)
	if s == nil || !ok {
		return
	}
	for _, r := range s.Rules {
		n := tried[r.Rule]
		if r.holds(v) {
			n[1]++
		} else {
			n[0]++
		}
		tried[r.Rule] = n
	}
	for name, e := range v {
		countRules(s.field(name), e, tried)
	}
}

// ruled returns values that a schema allows, with and without each optional field.
func ruled(r *rand.Rand, s *schema) any {
	if len(s.Enum) > 0 {
		return s.Enum[r.IntN(len(s.Enum))]
	}
	switch s.Type {
	case "object":
		fields := map[string]any{}
		for _, name := range s.names() {
			if slices.Contains(s.Required, name) || r.IntN(2) == 0 {
				fields[name] = ruled(r, s.Properties[name])
			}
		}
		return fields
	case "array":
		list := []any{}
		for range r.IntN(3) {
			list = append(list, ruled(r, s.Items))
		}
		return list
	case "boolean":
		return r.IntN(2) == 0
	case "integer":
		return int64(r.IntN(9))
	}
	return []string{"", "a", "a-b.c", "A", "aws"}[r.IntN(5)]
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

// mutated changes one value at random, to a value that the schema may or may not allow.
func mutated(r *rand.Rand, s *schema, value any) any {
	switch v := value.(type) {
	case map[string]any:
		if len(v) > 0 && r.IntN(6) > 0 {
			name := anyName(r, slices.Sorted(maps.Keys(v)))
			v[name] = mutated(r, s.field(name), v[name])
			return v
		}
		return mutatedFields(r, s, v)
	case []any:
		if len(v) > 0 && r.IntN(3) > 0 {
			i := r.IntN(len(v))
			v[i] = mutated(r, s.items(), v[i])
			return v
		}
		return append(v, anything(r, s.items()))
	}
	return anything(r, s)
}

func mutatedFields(r *rand.Rand, s *schema, fields map[string]any) map[string]any {
	if len(fields) > 0 && r.IntN(3) == 0 {
		delete(fields, anyName(r, slices.Sorted(maps.Keys(fields))))
		return fields
	}
	name := "unknown"
	if s != nil && len(s.Properties) > 0 && r.IntN(8) > 0 {
		name = anyName(r, slices.Sorted(maps.Keys(s.Properties)))
	}
	fields[name] = anything(r, s.field(name))
	return fields
}

func anyName(r *rand.Rand, names []string) string { return names[r.IntN(len(names))] }

// anything is mostly a value of the type that the schema wants.
func anything(r *rand.Rand, s *schema) any {
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

// TestSchemas parses every schema, and expects an error for unsupported keywords and rules.
func TestSchemas(t *testing.T) {
	for kind := range schemas {
		if _, err := schemas[kind].schema(); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for kind, k := range operatorSchemas {
		if _, err := k.schema(); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for _, text := range []string{
		`{"type": "object", "maxProperties": 3}`,
		`{"type": "object", "x-kubernetes-validations": [{"rule": "true", "message": "x"}]}`,
		`{"type": "object", "properties": {"a": {"x-kubernetes-validations": [{"rule": "true", "reason": "x"}]}}}`,
	} {
		if _, err := parseSchema([]byte(text)); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

// TestNamedFields compares the fields that the sentences of package finding name with the schemas.
func TestNamedFields(t *testing.T) {
	has := func(kind string, path []string) bool {
		s, err := schemas[kind].schema()
		for _, name := range path {
			if err != nil {
				t.Fatal(err)
			}
			if s = s.Properties[name]; s == nil {
				return false
			}
		}
		return true
	}
	for _, name := range []string{"fields.go", "options.go"} {
		text, err := os.ReadFile(filepath.Join("..", "finding", name))
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile(`\bspec(\.[a-zA-Z]+)+`).FindAllString(string(text), -1)
		if len(named) == 0 {
			t.Errorf("%s names no field", name)
		}
		for _, field := range named {
			path := strings.Split(field, ".")
			if !slices.ContainsFunc(slices.Collect(maps.Keys(schemas)), func(kind string) bool { return has(kind, path) }) {
				t.Errorf("%s: no kind has %s", name, field)
			}
		}
	}
}
