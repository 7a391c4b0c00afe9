package values

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/finding"
)

type missing string

func (m missing) Error() string        { return string(m) }
func (m missing) Is(target error) bool { return target == fs.ErrNotExist }

// objects holds data by kind/name.
type objects map[string]map[string]string

func (o objects) lookup(kind, name string) (map[string][]byte, error) {
	found, ok := o[kind+"/"+name]
	if !ok {
		return nil, missing(fmt.Sprintf("%ss %q not found", strings.ToLower(kind), name))
	}
	data := map[string][]byte{}
	for k, v := range found {
		data[k] = []byte(v)
	}
	return data, nil
}

func compose(t *testing.T, refs []meta.ValuesReference, inline string, o objects) (map[string]any, error) {
	t.Helper()
	var values map[string]any
	if err := yaml.Unmarshal([]byte(inline), &values); err != nil {
		t.Fatal(err)
	}
	composed, _, err := Trace("mock", refs, values, o.lookup, func(err error) { t.Log(err) })
	return composed, err
}

func TestCompose(t *testing.T) {
	secret := func(value string) objects {
		return objects{"Secret/values": {"single": value}, "ConfigMap/values": {"values.yaml": "merge:\n  at: base\n  list: [a, b]\n"}}
	}
	at := func(path string) []meta.ValuesReference {
		return []meta.ValuesReference{{Kind: "Secret", Name: "values", ValuesKey: "single", TargetPath: path}}
	}
	values := meta.ValuesReference{Kind: "ConfigMap", Name: "values"}
	list := objects{
		"ConfigMap/values": {"values.yaml": "nested: {configuration: [list, item, option]}"},
		"Secret/values":    {"single": "foo"},
	}
	tests := []struct {
		name    string
		refs    []meta.ValuesReference
		inline  string
		objects objects
		want    string
	}{
		{"nothing", nil, "", nil, `{}`},
		{"case R22: later wins, inline last", []meta.ValuesReference{{Kind: "ConfigMap", Name: "values"}, {Kind: "Secret", Name: "values"}}, "other: values",
			objects{
				"ConfigMap/values": {"values.yaml": "flat: value\nnested:\n  configuration: value\n"},
				"Secret/values":    {"values.yaml": "flat:\n  nested: value\nnested: value\n"},
			}, `{"flat":{"nested":"value"},"nested":"value","other":"values"}`},
		{"case R24: an element of a list", append([]meta.ValuesReference{values}, at("nested.configuration[1]")...), "", list,
			`{"nested":{"configuration":["list","foo","option"]}}`},
		{"case R24: in quotes", at("a"), "", secret(`"true"`), `{"a":"true"}`},
		{"case R24: in single quotes", at("a"), "", secret(`'1'`), `{"a":"1"}`},
		{"case R24: a list", at("l"), "", secret("{a,b,c}"), `{"l":["a","b","c"]}`},
		{"types", at("a"), "", secret("12"), `{"a":12}`},
		{"null", at("a"), "a: x", secret("null"), `{"a":"x"}`},
		{"padding", at("a[2]"), "", secret("x"), `{"a":[null,null,"x"]}`},
		{"trailing newline", at("a"), "", secret("x\n"), `{"a":"x\n"}`},
		{"escaped comma", at("a"), "", secret(`x\,y`), `{"a":"x,y"}`},
		{"literal", []meta.ValuesReference{{Kind: "Secret", Name: "values", ValuesKey: "single", TargetPath: "a", Literal: true}}, "", secret(`{x},"y`), `{"a":"{x},\"y"}`},
		{"literal without a path", []meta.ValuesReference{{Kind: "ConfigMap", Name: "values", Literal: true}}, "", secret(""), `{"merge":{"at":"base","list":["a","b"]}}`},
		{"empty content", []meta.ValuesReference{{Kind: "Secret", Name: "values", ValuesKey: "single"}}, "", secret(""), `{}`},
		{"first document", []meta.ValuesReference{{Kind: "Secret", Name: "values", ValuesKey: "single"}}, "", secret("a: 1\n---\nb: 2\n"), `{"a":1}`},
		{"null stays", []meta.ValuesReference{values}, "merge: {at: null}", secret(""), `{"merge":{"at":null,"list":["a","b"]}}`},
		{"scalar over map", []meta.ValuesReference{values}, "merge: 1", secret(""), `{"merge":1}`},
		{"map over scalar", []meta.ValuesReference{values}, "merge: {at: {x: 1}}", secret(""), `{"merge":{"at":{"x":1},"list":["a","b"]}}`},
		{"lists are replaced", []meta.ValuesReference{values}, "merge: {list: [c]}", secret(""), `{"merge":{"at":"base","list":["c"]}}`},
		// QR26: which of them wins depends on which map is changed.
		{"target path over inline, in a map of inline alone", at("merge.at"), "merge: {at: inline}", secret("target"), `{"merge":{"at":"target"}}`},
		{"inline over target path at the top", at("top"), "top: inline", secret("target"), `{"top":"inline"}`},
		{"inline over target path in a merged map", append([]meta.ValuesReference{values}, at("merge.at")...), "merge: {at: inline}", secret("target"), `{"merge":{"at":"inline","list":["a","b"]}}`},
		{"optional object", []meta.ValuesReference{{Kind: "Secret", Name: "missing", Optional: true}}, "a: 1", nil, `{"a":1}`},
		{"optional key", []meta.ValuesReference{{Kind: "Secret", Name: "values", ValuesKey: "no", Optional: true}}, "a: 1", secret(""), `{"a":1}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := compose(t, tt.refs, tt.inline, tt.objects)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(got)
			if err != nil || string(text) != tt.want {
				t.Errorf("%s, %v\nwant %s", text, err, tt.want)
			}
		})
	}
}

func TestComposeReadsOnce(t *testing.T) {
	reads := 0
	lookup := func(string, string) (map[string][]byte, error) {
		reads++
		return map[string][]byte{"a": []byte("a: 1"), "b": []byte("b: 1")}, nil
	}
	refs := []meta.ValuesReference{{Kind: "Secret", Name: "x", ValuesKey: "a"}, {Kind: "Secret", Name: "x", ValuesKey: "b"}}
	if _, _, err := Trace("mock", refs, nil, lookup, nil); err != nil || reads != 1 {
		t.Errorf("%d reads, %v", reads, err)
	}
}

func TestComposeErrors(t *testing.T) {
	const canary = "hunter2"
	o := objects{
		"Secret/values":    {"text": canary, "broken": "a: [" + canary, "anchor": "*" + canary, "list": "a," + canary, "deep": "{" + canary},
		"ConfigMap/values": {"text": "some text", "list": "a,b"},
	}
	ref := func(kind, key, path string) meta.ValuesReference {
		return meta.ValuesReference{Kind: kind, Name: "values", ValuesKey: key, TargetPath: path}
	}
	tests := []struct {
		name string
		ref  meta.ValuesReference
		want string
		hint string
	}{
		{"case R23", meta.ValuesReference{Kind: "Secret", Name: "missing"},
			`could not resolve Secret chart values reference 'mock/missing' with key 'values.yaml': secrets "missing" not found`, ""},
		{"missing, with a path", meta.ValuesReference{Kind: "ConfigMap", Name: "missing", TargetPath: "p"}, `configmaps "missing" not found`, ""},
		{"key, with a path", ref("Secret", "none", "p"), "key not found", "Secret mock/values has the keys anchor, broken, deep, list, text"},
		{"key", ref("Secret", "none", ""), `could not resolve Secret chart values reference 'mock/values' with key 'none': key not found`, "Secret mock/values has the keys anchor, broken, deep, list, text"},
		{"default key", ref("Secret", "", ""), `could not resolve Secret chart values reference 'mock/values' with key 'values.yaml': key not found`, "without valuesKey"},
		{"optional, but no YAML", meta.ValuesReference{Kind: "Secret", Name: "values", ValuesKey: "broken", Optional: true},
			`could not resolve optional Secret chart values reference 'mock/values' with key 'broken': the value is not a YAML map`, "write a YAML map under the key broken of Secret mock/values"},
		{"text", ref("Secret", "text", ""), "the value is not a YAML map", "write a YAML map under the key"},
		{"anchor", ref("Secret", "anchor", ""), "the value is not a YAML map", "write a YAML map under the key"},
		{"path of a Secret", ref("Secret", "list", "p"), "the value cannot be set at its target path", "literal: true"},
		{"list of a Secret", ref("Secret", "deep", "p"), "the value cannot be set at its target path", "literal: true"},
		{"text of a ConfigMap", ref("ConfigMap", "text", ""), "cannot unmarshal", "write a YAML map under the key text of ConfigMap mock/values"},
		{"path of a ConfigMap", ref("ConfigMap", "list", "p"), `key "b" has no value`, "literal: true"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := compose(t, []meta.ValuesReference{{Kind: "Secret", Name: "missing", Optional: true}, tt.ref}, "", o)
			var failed *Error
			if !errors.As(err, &failed) || failed.Index != 1 || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v\nwant  %s", err, tt.want)
			}
			hint := strings.Join(finding.Hints(err), "\n")
			if !strings.Contains(hint, tt.hint) || tt.hint == "" && hint != "" {
				t.Errorf("hint %q, want %q", hint, tt.hint)
			}
			if text := fmt.Sprintf("%v %+v %s", err, err, hint); strings.Contains(text, canary) {
				t.Errorf("a value of a Secret is in %s", text)
			}
		})
	}
	broken := func(string, string) (map[string][]byte, error) { return nil, errors.New("boom") }
	if _, _, err := Trace("mock", []meta.ValuesReference{{Kind: "Secret", Name: "x", Optional: true}}, nil, broken, nil); err == nil {
		t.Error("optional forgives only what is missing")
	}
}

func TestDigest(t *testing.T) {
	tests := []struct{ name, values, want string }{
		// case R25
		{"none", "", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"empty", "{}", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"map", "{foo: bar, baz: {cool: stuff}}", "sha256:3f3641788a2d4abda3534eaa90c90b54916e4c6e3a5b2e1b24758b7bfa701ecd"},
	}
	for _, tt := range tests {
		var values map[string]any
		if err := yaml.Unmarshal([]byte(tt.values), &values); err != nil {
			t.Fatal(err)
		}
		if got, err := Digest(values); err != nil || got.String() != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.name, got, err, tt.want)
		}
	}
	var first string
	for range 50 {
		var values map[string]any
		if err := yaml.Unmarshal([]byte("l: [[{a: 1, b: 2, c: 3, d: 4}, {e: 1.0, f: 1e3}]]"), &values); err != nil {
			t.Fatal(err)
		}
		got, err := Digest(values)
		if first == "" {
			first = got.String()
		}
		if err != nil || got.String() != first {
			t.Fatalf("%s, %v, before %s", got, err, first)
		}
	}
}
