package admission

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/runtime"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Every rule that exists today can be left out when a field is missing. A new one that cannot is not wrong, only slow:
// then add it to the list below.
func TestEveryRuleHasGuards(t *testing.T) {
	want := map[string]string{
		"HelmRepository": "[]",
		"OCIRepository":  "[]",
		"HelmChart":      "[[verify]]",
		"GitRepository":  "[[serviceAccountName]]",
		// Of these, the second compares what is there.
		"ImagePolicy":     "[[digestReflectionPolicy] [interval]]",
		"ImageRepository": "[]",
		flux1Kind:         "[]",
		olderFlux1Kind:    "[]",
		// The rules without guards are about which fields are there: see asksForPresence.
		"HelmRelease":   "[[] [] [configMapRef secretRef] [retryInterval] [retryInterval]]",
		"Kustomization": "[[] [configMapRef secretRef]]",
		// Names of artifacts: see asksOfAll.
		"ArtifactGenerator": "[[]]",
		"ExternalArtifact":  "[]",
		"Bucket":            "[[secretRef serviceAccountName] [serviceAccountName] [sts] [sts] [sts] [sts] [sts]]",
	}
	for kind := range schemas {
		s, err := schemaOf(kind)
		if err != nil {
			t.Fatal(err)
		}
		got := [][]string{}
		walk(s.shape, func(s *shape) {
			for _, rule := range s.rules {
				got = append(got, guards(rule))
			}
		})
		slices.SortFunc(got, func(a, b []string) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		if fmt.Sprint(got) != want[kind] {
			t.Errorf("%s: %v, want %s", kind, got, want[kind])
		}
	}
}

func walk(s *shape, visit func(*shape)) {
	if s == nil {
		return
	}
	visit(s)
	walk(s.Items, visit)
	for _, p := range s.Properties {
		walk(p, visit)
	}
	walk(s.AdditionalProperties, visit)
}

func hasRules(s *schema) bool {
	found := false
	walk(s.shape, func(s *shape) { found = found || len(s.rules) > 0 })
	return found
}

func TestAsksForPresence(t *testing.T) {
	fields := map[string]any{"a": 1, "n": nil, "t": "x"}
	tests := []struct {
		rule string
		want bool
	}{
		{"has(self.a)", true}, {"!has(self.a)", false}, {"has(self.b)", false}, {"!has(self.b)", true},
		{"has(self.a) && !has(self.b)", true}, {"has(self.b)||has(self.a)", true}, {"!(has(self.a) || has(self.b))", false},
		{"(has(self.a) && !has(self.b)) || (!has(self.a) && has(self.b))", true},
		{"has(self.a) || has(self.b) && has(self.c)", true}, {"!has(self.b) && has(self.b) || has(self.b)", false},
		{"has(self.n)", false}, {"has(self.a) || has(self.n)", false}, // null is not for us to judge
		{"has(self.a) || self.b", false}, {"has(self.a.b)", false}, {"has(self.a", false}, {"(has(self.a)", false},
		{"has(self.a))", false}, {"has(self.a) ? true : false", false}, {"has(self.a) &&", false}, {"", false},
		{"self.t == 'x'", true}, {"self.t != 'x'", false}, {"has(self.b) || !has(self.t) || self.t != 'y'", true},
		{"self.a == '1'", false}, {"self.b == 'x'", false}, {"self.t == 'x", false}, {"self.t < 'x'", false}, {"self.t == \"x\"", false},
	}
	for _, tt := range tests {
		if got := asksForPresence(tt.rule, fields); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.rule, got, tt.want)
		}
	}
}

func TestGuards(t *testing.T) {
	tests := []struct{ rule, want string }{
		{"!has(self.a)", "[a]"},
		{"!has(self.a) || self.b == 'c'", "[a]"},
		{"self.b == 'c'||!has(self.a)||!has(self.d)", "[a d]"},
		{"!has(self.a) || (has(self.b) && (self.b == 'x' || !has(self.c)))", "[a]"},
		{"self.b == '|| !has(self.a) ||'", "[]"},
		{"self.b == \"|| !has(self.a) ||\" || !has(self.c)", "[c]"},
		{"(!has(self.a) || self.b) && self.c", "[]"},
		{"!has(self.a) && self.b || self.c", "[]"},
		{"!has(self.a) || self.b ? self.c : self.d", "[]"},
		{"self.b == 'x\\'' || !has(self.a)", "[]"},
		{"!has(self.a) // || b", "[]"},
		{"has(self.a) || b", "[]"}, {"!has(self.a.b) || c", "[]"}, {"!has(old.a) || c", "[]"},
		{"!has(self.a) ||", "[a]"}, {"|", "[]"}, {"'", "[]"}, {"", "[]"},
	}
	for _, tt := range tests {
		if got := fmt.Sprint(guards(tt.rule)); got != tt.want {
			t.Errorf("guards of %s are %s, want %s", tt.rule, got, tt.want)
		}
	}
}

// Whatever rulesMatter waves through has to be fine with the rules themselves, over thousands of objects of every shape
// that the schemas allow.
func TestRulesLeftOutHold(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for kind := range schemas {
		s, err := schemaOf(kind)
		if err != nil {
			t.Fatal(err)
		}
		server := serverOf(t, s)
		always := cel.NewValidator(server.structural, true, celconfig.PerCallLimit)
		left, broken := 0, 0
		for range 3000 {
			content := map[string]any{"apiVersion": v1, "kind": kind, "metadata": map[string]any{"name": "x"}}
			content["spec"] = generate(random, s.Properties["spec"], kind+".spec")
			s.setDefaults(content)
			errs, _ := always.Validate(context.Background(), nil, server.structural, runtime.DeepCopyJSON(content), nil, celconfig.RuntimeCELCostBudget)
			if len(errs) > 0 {
				broken++
			}
			if s.rulesMatter(content) {
				continue
			}
			left++
			if len(errs) > 0 {
				t.Fatalf("%s: %v was waved through: %v", kind, content, errs)
			}
		}
		if left == 0 || hasRules(s) && (broken == 0 || left == 3000) {
			t.Errorf("%s: %d of 3000 waved through, %d broken: this test tests nothing", kind, left, broken)
		}
	}
}

// generate makes a value that a schema allows, with each optional field in it or not.
func generate(random *rand.Rand, s *shape, name string) any {
	if len(s.Enum) > 0 {
		return s.Enum[random.IntN(len(s.Enum))]
	}
	switch s.Type {
	case "object":
		fields := map[string]any{}
		for _, k := range s.names() {
			if slices.Contains(s.Required, k) || random.IntN(2) == 0 {
				fields[k] = generate(random, s.Properties[k], name+"."+k)
			}
		}
		return fields
	case "array":
		list := []any{}
		for range random.IntN(3) {
			list = append(list, generate(random, s.Items, name))
		}
		return list
	case "boolean":
		return random.IntN(2) == 0
	}
	return []string{"", "a", "1m"}[random.IntN(3)]
}
