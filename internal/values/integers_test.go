package values

import (
	"reflect"
	"testing"

	"helm.sh/helm/v3/pkg/strvals"
)

// Integers survive a values file by expressions that say which they are.
func TestIntegers(t *testing.T) {
	t.Parallel()
	composed := map[string]any{
		"a": int64(10000000), "b": map[string]any{"c.d/e,f=g[0]\\h": int64(9007199254740993), "": map[string]any{"x": int64(1)}},
		"list": []any{"x", int64(-2), map[string]any{"n": int64(0), "f": 1e7}, []any{nil, int64(3)}}, "f": 1e7, "s": "5", "n": nil,
	}
	want := []string{"a=10000000", `b.c\.d/e\,f\=g\[0\]\\h=9007199254740993`, "list[1]=-2", "list[2].n=0", "list[3][1]=3"}
	got := Integers(composed)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	read := map[string]any{
		"a": 1e7, "b": map[string]any{"c.d/e,f=g[0]\\h": 9007199254740992., "": map[string]any{"x": int64(1)}},
		"list": []any{"x", -2., map[string]any{"n": 0., "f": 1e7}, []any{nil, 3.}}, "f": 1e7, "s": "5", "n": nil,
	}
	for _, expression := range got {
		if err := strvals.ParseInto(expression, read); err != nil {
			t.Errorf("%s: %v", expression, err)
		}
	}
	if !reflect.DeepEqual(read, composed) {
		t.Errorf("%v", read)
	}
}
