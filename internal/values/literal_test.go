package values

import (
	"reflect"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
)

// TestLiteralPath escapes dots in the target paths of literal values.
func TestLiteralPath(t *testing.T) {
	for _, tt := range []struct {
		path, value string
		want        map[string]any
	}{
		{`a.b`, `x`, map[string]any{"a": map[string]any{"b": "x"}}},
		{`a\.b.c`, `x`, map[string]any{"a.b": map[string]any{"c": "x"}}},
		{`a\.b.c`, `{x,y}: \ 1`, map[string]any{"a.b": map[string]any{"c": `{x,y}: \ 1`}}},
		{`annotations.nginx\.ingress/rule`, "true", map[string]any{"annotations": map[string]any{"nginx.ingress/rule": "true"}}},
		{`a\.b[1]`, `x`, map[string]any{"a.b": []any{nil, "x"}}},
	} {
		into := map[string]any{}
		if err := setter(Reference{ValuesReference: meta.ValuesReference{TargetPath: tt.path, Literal: true}}, tt.value)(into); err != nil || !reflect.DeepEqual(into, tt.want) {
			t.Errorf("%s: %v, %v", tt.path, into, err)
		}
	}
}
