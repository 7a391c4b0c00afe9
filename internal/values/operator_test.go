package values

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func part(kind, name, text string) Part {
	return Part{Namespace: "default", Kind: kind, Name: name, Key: "values.yaml", Read: func() ([]byte, error) { return []byte(text), nil }}
}

// H19: later parts win, lists are replaced, null stays; H20: the checksum is the operator's.
func TestMergeParts(t *testing.T) {
	for _, test := range []struct {
		name           string
		parts          []Part
		inline         string
		want, checksum string
	}{
		{"H19", []Part{part("Secret", "s", `{a: 1, m: {p: 1, q: 1}}`), part("ConfigMap", "c", `{m: {q: 2, r: [1]}}`)}, `{"m":{"r":[]},"z":null}`,
			`{"a":1,"m":{"p":1,"q":2,"r":[]},"z":null}`, "2ef0d1da9c2b989ea3199850cd90e11af20f67acccf5ace409a5004fc895534e"},
		{"H20 nothing", nil, `null`, `{}`, "ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356"},
		{"H20", nil, `{"replicaCount":2}`, `{"replicaCount":2}`, "e15c415d62760896bd8bec192a44c5716dc224db9e0fc609b9ac14718f8f9e56"},
		{"YAML 1.1", []Part{part("ConfigMap", "c", "y: 1\nn: 2\n")}, `null`, `{"false":2,"true":1}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var inline map[string]any
			if err := json.Unmarshal([]byte(test.inline), &inline); err != nil {
				t.Fatal(err)
			}
			merged, _, err := MergeParts(test.parts, inline, func(error) {})
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := json.Marshal(merged); string(got) != test.want {
				t.Errorf("%s, not %s", got, test.want)
			}
			if sum, err := Checksum(merged); err != nil || test.checksum != "" && sum != test.checksum {
				t.Errorf("checksum %s, error %v", sum, err)
			}
		})
	}
}

// H21, H22: optional parts may be missing or unreadable, and messages contain no values of Secrets.
func TestUnreadableParts(t *testing.T) {
	broken := part("Secret", "s", "hunter2: [")
	_, _, err := MergeParts([]Part{broken}, nil, func(error) {})
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "values.yaml in Secret default/s") {
		t.Errorf("error %v", err)
	}
	missing := part("ConfigMap", "c", "")
	missing.Read = func() ([]byte, error) { return nil, errors.New("gone") }
	broken.Optional, missing.Optional = true, true
	forgiven := 0
	if _, _, err := MergeParts([]Part{broken, missing}, nil, func(error) { forgiven++ }); err != nil || forgiven != 2 {
		t.Errorf("error %v, %d forgiven", err, forgiven)
	}
}
