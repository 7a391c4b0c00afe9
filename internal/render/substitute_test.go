package render

import (
	"maps"
	"math"
	"reflect"
	"testing"

	sigsyaml "sigs.k8s.io/yaml"
)

// TestTextOf compares the text before the substitution with the output of the controller's library.
func TestTextOf(t *testing.T) {
	content := map[string]any{
		"numbers": []any{int64(1), int64(math.MaxInt64), int64(math.MinInt64), 1.0, math.Copysign(0, -1), 0.1, 1e6, 1.5e6, 123456789.0, 1e15, 1e18, -1e18, 9.3e18, 1.9e19, 1e20, 1e21, 1e-7, 1.5e300},
		"texts":   []any{"", "a", "1", "1e6", "0x1", "010", "yes", "null", "~", "2026-01-02", "a: b", "- a", "#", "a #b", " a", "a\n", "a\nb\n\n", "\ta", "a\\b", "'", "\"", "<&>", "\u00e4", "\u2028", "\x00\x1b", "${A}", "${A:=b}"},
		"others":  []any{true, false, nil, map[string]any{}, []any{}, map[string]any{"b": 1.0, "a10": []any{2.0}, "a9": int64(3), "${A}": "b", "1": nil, "on": true}},
	}
	before := maps.Clone(content)
	got, err := textOf(content)
	if err != nil {
		t.Fatal(err)
	}
	want, err := sigsyaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if !reflect.DeepEqual(content, before) || content["numbers"].([]any)[3] != any(1.0) {
		t.Error("the object was changed")
	}
}
