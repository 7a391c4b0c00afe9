package edit

import (
	"fmt"
	"testing"

	"go.yaml.in/yaml/v3"
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
			err = d.documents[0].InsertFields(root.Content[1], "url", []Field{{Key: "type", Value: "oci"}})
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

// TestPlaces: lines of documents, of comments and of pending edits count from 1 in the file, columns in characters.
func TestPlaces(t *testing.T) {
	f := Parse([]byte("\ufeffa: 1\r\n# c\r\n---\r\n# c\n  # d \nb: {ö: 1, k: |-\n  x}\n---\n# c\nb: {ö: 1, k: old}\nc: |\n  old\n\n"))
	if n := len(f.Documents()); n != 2 && n != 3 {
		t.Fatalf("%d documents", n)
	}
	d := f.Documents()[len(f.Documents())-1]
	if first, last := d.Lines(); first != 9 || last != 12 {
		t.Errorf("lines %d to %d", first, last)
	}
	if got := d.Comments(); len(got) != 1 || len(got["# c"]) != 1 || got["# c"][0] != 9 {
		t.Errorf("comments %v", got)
	}
	first := f.Documents()[0]
	if got, _ := first.Lines(); got != 1 || len(first.Comments()["# c"]) != 1 || first.Comments()["# c"][0] != 2 {
		t.Errorf("line %d, comments %v", got, first.Comments())
	}
	flow, block, other := at(d.Root, "b", "k"), at(d.Root, "c"), at(d.Root, "b", "ö")
	for n, value := range map[*yaml.Node]string{flow: "new", block: "new\n"} {
		if err := d.Set(n, value); err != nil {
			t.Fatal(err)
		}
	}
	if r, ok := d.Region(flow); !ok || r != (Region{10, 14, 17, "new"}) {
		t.Errorf("%+v, %v", r, ok)
	}
	if r, ok := d.Region(block); ok {
		t.Errorf("an edit of several lines is %+v", r)
	}
	if r, ok := d.Region(other); ok {
		t.Errorf("no edit is %+v", r)
	}
	if err := first.Set(first.Root.Content[1], "2"); err != nil {
		t.Fatal(err)
	}
	if r, ok := first.Region(first.Root.Content[1]); !ok || r != (Region{1, 4, 5, "\"2\""}) {
		t.Errorf("%+v, %v", r, ok)
	}
}
