package edit

import (
	"fmt"
	"testing"
)

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1.10 # c\n": "a: \"1.10\" # c\n", "a: yes\n": "", "a: true\n": "a: \"true\"\n", "{a: 010}\n": "{a: \"010\"}\n", "a: x\n": "", "a: '1'\n": "", "a: ~\n": "",
	} {
		d := Parse([]byte(text))
		err := d.documents[0].Quote(d.documents[0].Root.Content[1])
		got, _, refusals := d.Apply()
		if want == "" {
			if err == nil && string(got) != text {
				t.Errorf("%q became %q", text, got)
			}
			continue
		}
		if err != nil || len(refusals) > 0 || string(got) != want {
			t.Errorf("%q became %q, %v, %v", text, got, err, refusals)
		}
	}
}

func TestInsert(t *testing.T) {
	for text, want := range map[string]string{
		"spec:\n  url: x # c\n  b: 1\n":    "spec:\n  url: x # c\n  type: oci\n  b: 1\n",
		"spec:\r\n  url: x\r\n  b: 1":      "spec:\r\n  url: x\r\n  type: oci\r\n  b: 1",
		"spec:\n  url: x":                  "spec:\n  url: x\n  type: oci",
		"spec: {url: \"x\", b: 1} # c\n":   "spec: {url: \"x\", type: oci, b: 1} # c\n",
		"spec:\n  url: x\n  type: other\n": "",
		"spec:\n  uri: x\n":                "",
		"spec:\n  url: *x\n":               "",
		"spec:\n  ? url\n  : x\n":          "",
	} {
		d := Parse([]byte(text))
		var err error = fmt.Errorf("not parsed")
		if root := d.documents[0].Root; root != nil {
			err = d.documents[0].Insert(root.Content[1], "url", "type", "oci")
		}
		got, n, refusals := d.Apply()
		if want == "" {
			if err == nil || string(got) != text {
				t.Errorf("%q became %q", text, got)
			}
			continue
		}
		if err != nil || n != 1 || len(refusals) > 0 || string(got) != want {
			t.Errorf("%q became %q, %v, %v", text, got, err, refusals)
		}
	}
}
