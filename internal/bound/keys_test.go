package bound

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestKeys refuses only texts that take the YAML library too long.
func TestKeys(t *testing.T) {
	many := strings.Repeat("a: b, ", 1000) // compared 1,000,000 times, both ways
	for text, want := range map[string]string{
		"{" + many + "}":                         "yaml: unmarshal errors",
		"[{" + many + "}, {}]":                   "yaml: unmarshal errors",
		"[{" + many + "}, {a: b}]":               ErrKeys.Error(),
		"{" + many + "a: b}":                     ErrKeys.Error(),
		"[&a {" + many[:4200] + "}, *a, *a, *a]": ErrKeys.Error(),
	} {
		var n yaml.Node
		if err := yaml.Unmarshal([]byte(text), &n); err != nil {
			t.Fatal(err)
		}
		var value any
		if err := Decode(&n, &value); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40s: %.100v, want %s", text, err, want)
		}
	}
	var value map[string]string
	if err := Decode(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: "a"}, {Kind: yaml.ScalarNode, Value: "b"}}}, &value); err != nil || value["a"] != "b" {
		t.Errorf("%v, %v", value, err)
	}
}

// TestComparisons counts keys as often as aliases name them.
func TestComparisons(t *testing.T) {
	for text, want := range map[string]int64{
		"a": 0, "[a, b, c]": 0, "{a: b}": 1, "{a: b, c: d, e: {f: g}}": 9 + 1,
		"{a: &x {b: c, d: e}, f: *x, g: [*x, *x]}": 9 + 4*4,
		"&x {a: &y [*y], b: *x}":                   4,
		"{<<: [{a: b}, {c: d, e: f}], g: h}":       4 + 1 + 4,
	} {
		var n yaml.Node
		if err := yaml.Unmarshal([]byte(text), &n); err != nil {
			t.Fatal(err)
		}
		if got := Comparisons(&n, map[*yaml.Node]int64{}); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
