package inventory

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestInlineValues compares the values with those of helm-controller, which ignores values that it cannot parse.
func TestInlineValues(t *testing.T) {
	tests := map[string]any{
		"text":             map[string]any{"a": "é <&> \U0001f600 \u2028 \x00 \"", "b": []any{1.5, 12345678901234567, nil, true}},
		"a control":        map[string]any{"a": "x\x7fy"},
		"another":          map[string]any{"a": "x\u0081y"},
		"a line break":     map[string]any{"a": "x\u0085y"},
		"no character":     map[string]any{"a": "x\uffffy"},
		"a degree":         map[string]any{"a": "20 °C"},
		"a long key":       map[string]any{"a": map[string]any{strings.Repeat("k", 1100): "v"}},
		"a long text":      map[string]any{"a": strings.Repeat("k", 5000)},
		"a key of symbols": map[string]any{"<<": map[string]any{"a": "b"}, "true": "x", "1": "y"},
		"a list":           []any{"a"},
		"null":             nil,
	}
	for name, values := range tests {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(values)
			if err != nil {
				t.Fatal(err)
			}
			hr := &helmv2.HelmRelease{Spec: helmv2.HelmReleaseSpec{Values: &apiextensionsv1.JSON{Raw: raw}}}
			want := hr.GetValues()
			got, err := InlineValues(hr)
			if (err != nil) != (want == nil && values != nil) || !reflect.DeepEqual(got, want) {
				t.Errorf("%v, %v, want %v", got, err, want)
			}
		})
	}
}
