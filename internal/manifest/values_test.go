package manifest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
)

func TestShared(t *testing.T) {
	parse := func(text string) (m map[string]any) {
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	const text = `{"same": {"a": [1, {"b": null}]}, "other": {"a": "x", "same": {"c": true}}, "list": [{"d": 1}, {"d": 2}], "kind": {}}`
	for _, changed := range []string{
		text,
		`{"same": {"a": [1, {"b": null}]}, "other": {"a": "y", "same": {"c": true}}, "list": [{"d": 1}, {"d": 3}, {"d": 4}], "kind": []}`,
		`{"same": {"a": [1, {"b": false}]}, "other": {"same": {"c": true}, "new": null}, "list": "text", "kind": {"a": 1}}`,
	} {
		written, value := parse(text), parse(changed)
		got, equal := Shared(value, written)
		if !reflect.DeepEqual(got, any(parse(changed))) || !reflect.DeepEqual(written, parse(text)) {
			t.Errorf("%s became %v, and what it shares %v", changed, got, written)
		}
		if equal != (changed == text) {
			t.Errorf("%s: equal is %v", changed, equal)
		}
		delete(written["other"].(map[string]any)["same"].(map[string]any), "c")
		if same := got.(map[string]any)["other"].(map[string]any)["same"].(map[string]any); len(same) > 0 {
			t.Errorf("%s: a part that is equal is held twice", changed)
		}
	}
}

func TestLeaves(t *testing.T) {
	value := map[string]any{"b": []any{map[string]any{"c": "x", "left": "out"}, nil}, "a": true, "left": 1, "empty": map[string]any{}}
	var got []string
	for path, v := range Leaves(value, map[string]bool{"left": true}) {
		got = append(got, fmt.Sprint(Dotted(path...), "=", v))
	}
	if want := []string{"a=true", "b[0].c=x", "b[1]=<nil>"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for range Leaves(value, nil) {
		break
	}
}
