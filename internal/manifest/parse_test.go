package manifest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/bound"
)

func TestSyntaxErrors(t *testing.T) {
	tests := []struct {
		name, text string
		want       string
		hint       string
	}{
		{"tab as indentation", "a: b\n\tc: d\n", "f.yaml:2:1: found a tab character that violates indentation", "indent with spaces: YAML does not allow tabs"},
		{"tab after a key", "a:\n\t- b\n", "f.yaml:2:1: found character that cannot start any token", "indent with spaces: YAML does not allow tabs"},
		{"two colons", "x: y\na: b: c\n", "f.yaml:2:4: a colon before a space begins a value in YAML", `put the value in quotes: a: "b: c"`},
		{"two colons in the first line", "a: b: c\n", "f.yaml:1:4: a colon before a space begins a value in YAML", `put the value in quotes: a: "b: c"`},
		{"flow list left open", "x: 1\na: [1, 2\nb: 3\n", "f.yaml:2:1: did not find expected ',' or ']'", ""},
		{"wrong indentation", "a: b\n  c: d\n", "f.yaml:2:3: mapping values are not allowed in this context", ""},
		{"too little indentation", "a: |\n  x\n y\nb: c\n", "f.yaml:3:2: did not find expected key", ""},
		{"dedented second half", "  a: b\nc: d\n", "f.yaml:2:1: did not find expected <document start>", ""},
		{"list then map", "- a\nb: c\n", "f.yaml:2:1: did not find expected '-' indicator", ""},
		{"unknown anchor", "x: y\na: *nope\n", "f.yaml:2:4: * begins an alias in YAML, and there is no anchor &nope before it", `put the value in quotes: a: "*nope"`},
		{"reserved character", "x: 1\ny: 2\na: @foo\n", "f.yaml:3:4: @ cannot begin a value in YAML", `put the value in quotes: a: "@foo"`},
		{"control character", "x: 1\na: b\a\n", "f.yaml:2:5: control characters are not allowed", ""},
		{"second document", "a: b\n---\nc: d\n---\ne: f: g\n", "f.yaml:5:4: a colon before a space begins a value in YAML", `put the value in quotes: e: "f: g"`},
		{"far inside a block", "spec:\n  a: 1\n  b: 2\n  c: 3\n  d: 4\n e: 5\nf: 6\n", "f.yaml:6:2: did not find expected key", ""},
		{"a template", "spec:\n  {{- if .Values.x }}\n  a: b\n  {{- end }}\n", "f.yaml:2:3: did not find expected node content", "this looks like a template: render it first"},
		{"quote left open", "a: b\nc: \"d\ne: f\ng: h\n", "f.yaml:2:4: this quote opens here and is never closed", "close it at the end of its value"},
		{"quote closed by another", "a: b\nc: \"d\ne: f\ng: \"h\"\n", "f.yaml:2:4: this quote opens here and is never closed", "close it at the end of its value; the next such quote is on line 4"},
		{"text behind a quote", "a: \"b\" c\n", "f.yaml:1:7: the value ends with its closing quote, and more text follows", "put all of the value in quotes, or none of it"},
		{"star", "- x\n- a: * # any\n", "f.yaml:2:6: * begins an alias in YAML", `put the value in quotes: a: "*"`},
		{"range", "a:\n  version: >=1.0.0 <\"2\"\n", "f.yaml:2:12: > begins a block of text in YAML", `put the value in quotes: version: '>=1.0.0 <"2"'`},
		{"merge key", "a:\n  <<: *b\n", "f.yaml:2:7: * begins an alias in YAML, and there is no anchor &b before it", "write the anchor before the value to merge, in this document"},
		{"anchor of another document", "a: &x 1\n---\nb: *x\n", "f.yaml:3:4: the anchor that this alias names is in another document: anchors end at ---", "write the anchor or the value in this document"},
		{"merge conflict", "a: 1\n<<<<<<< HEAD\nb: 1\n=======\nb: 2\n>>>>>>> other\n", "f.yaml:2:1: unresolved merge conflict, which ends on line 6", "choose between the two sides, and remove the lines that begin with <<<<<<<, ======= and >>>>>>>"},
		{"alias of a Secret", "kind: Secret\nstringData: {a: *hunter2}\n", "f.yaml:2:17: * begins an alias in YAML", "put the value in quotes"},
		{"alias in a flow map", "x: 1\na: {b: *nope, c: *d}\n", "f.yaml:2:8: * begins an alias in YAML, and there is no anchor &nope before it", `put the value in quotes: "*nope"`},
		{"alias in a flow list", "a: &lables {b: c}\nx: ['*lable', *lable]\n", "f.yaml:2:15: * begins an alias in YAML, and there is no anchor &lable before it", `did you mean *lables? Else put the value in quotes: "*lable"`},
		{"alias on a line of a flow list", "a: {b: &one 1, c: &two 2}\nx: [\n  *one,\n  *other, # *x\n]\n", "f.yaml:4:3: * begins an alias in YAML, and there is no anchor &other before it", `the anchors before it: &one, &two; else put the value in quotes: "*other"`},
		{"alias in a flow sequence of a block", "a: &one 1\nx:\n- [*one, *to]\n", "f.yaml:3:10: * begins an alias in YAML, and there is no anchor &to before it", `the anchors before it: &one; else put the value in quotes: "*to"`},
		{"merge key in a flow map", "x: {<<: *b, c: d}\n", "f.yaml:1:9: * begins an alias in YAML, and there is no anchor &b before it", "write the anchor before the value to merge, in this document"},
		{"near anchor", "a: &values {b: c}\nx: *value # all\n", "f.yaml:2:4: * begins an alias in YAML, and there is no anchor &value before it", `did you mean *values? Else put the value in quotes: x: "*value"`},
		{"anchor after its alias", "a: [*x]\nb: &x 1\n", "f.yaml:1:5: the anchor &x is after this alias, not before it", "move the anchor above the alias"},
		{"flow alias of another document", "a: &x 1\n---\nb: {c: *x}\n", "f.yaml:3:8: the anchor that this alias names is in another document: anchors end at ---", "write the anchor or the value in this document"},
		{"anchor of a password", "kind: Job\npassword: &hunter2 x\na: [*hunter]\n", "f.yaml:3:5: * begins an alias in YAML, and there is no anchor &hunter before it", `put the value in quotes: "*hunter"`},
		{"host with a star", "host: *.example.com\n", "f.yaml:1:7: * begins an alias in YAML", `put the value in quotes: host: "*.example.com"`},
		{"star in a flow list", "hosts: [*.example.com]\n", "f.yaml:1:9: * begins an alias in YAML", `put the value in quotes: "*.example.com"`},
		{"alias that is a password", "kind: Job\npassword: *hunter2\n", "f.yaml:2:11: * begins an alias in YAML", "put the value in quotes"},
		{"line of a password", "kind: Job\npassword:\n  a: *hunter2\n", "f.yaml:3:6: * begins an alias in YAML", "put the value in quotes"},
		{"reference to a Secret", "kind: Job\nvaluesFrom:\n- kind: Secret\n  name: *a\n", "f.yaml:4:9: * begins an alias in YAML, and there is no anchor &a before it", `put the value in quotes: name: "*a"`},
		{"second line of a block", "a:\n  b: 1\n c: 2\n", "f.yaml:3:2: did not find expected key", ""},
		{"JSON", "{\n  \"a\": 1,\n  \"b\": 2\n  \"c\": 3\n}\n", "f.yaml:4:3: invalid character '\"' after object key:value pair", ""},
		{"NUL", "a: b\nc: \x00\n", "f.yaml:2:4: not a text file: it contains a NUL byte", ""},
		{"not UTF-8", "a: b\nc: \xff\n", "f.yaml:2:4: not a text file: it is neither UTF-8 nor UTF-16", ""},
		{"binary", "\x7fELF\x02\x01\x01\x00", "f.yaml:1:8: not a text file: it contains a NUL byte", ""},
		{"text", "# a comment\nhello world\n", "f.yaml:2:1: expected an object, found text", ""},
		{"a list", "- a\n", "f.yaml:1:1: expected an object, found a list", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := NewSet("")
			err := s.Add("f.yaml", []byte(tt.text))
			var parse *ParseError
			if !errors.As(err, &parse) {
				t.Fatalf("error = %v, want a *ParseError", err)
			}
			if err.Error() != tt.want {
				t.Errorf("error = %s\n    want  %s", err, tt.want)
			}
			if parse.Hint() != tt.hint {
				t.Errorf("hint = %q, want %q", parse.Hint(), tt.hint)
			}
		})
	}
}

const chart = `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata:
  name: podinfo
spec:
  chart: podinfo
`

// Only a document that is used is judged as far as its values.
func TestValueErrors(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"duplicate key", chart + "  interval: 1m\n  chart: other\n", `f.yaml:8:3: duplicate key "chart", first at line 6`},
		{"duplicate kind", "kind: HelmChart\n" + chart, `f.yaml:3:1: duplicate key "kind", first at line 1`},
		{"equal after YAML 1.1", chart + "  on: 1\n  \"true\": 2\n", `f.yaml:8:3: duplicate key "true", first at line 7`},
		{"numbers as keys", chart + "  1: 1\n  0x1: 2\n", `f.yaml:8:3: duplicate key "1", first at line 7`},
		{"not a number", chart + "  interval: .nan\n", "f.yaml:7:13: not possible in JSON: .nan"},
		{"infinite", chart + "  interval: -.Inf\n", "f.yaml:7:13: not possible in JSON: -.Inf"},
		{"list as a key", chart + "  ? [a]\n  : b\n", "f.yaml:7:5: not possible in JSON: a list as a key"},
		{"template", chart + "  version: {{ .Values.version }}\n", "f.yaml:7:13: not possible in JSON: a map as a key"},
		{"anchor inside itself", chart + "  x: &x\n  - *x\n", `f.yaml:8:5: anchor "x" contains itself`},
		{"nesting", chart + "  x: " + strings.Repeat("[", 1001) + strings.Repeat("]", 1001), "f.yaml:7:1005: nested deeper than 1000 levels"},
		{"JSON duplicate", `{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmChart",` + "\n" + ` "spec": {"chart": "a", "chart": "b"}}`, `f.yaml:2:25: duplicate key "chart", first at line 2`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := NewSet("")
			err := s.Add("f.yaml", []byte(tt.text))
			if err == nil && len(s.faults) == 1 {
				err = s.faults[0] // of the document alone
			}
			if fmt.Sprint(err) != tt.want {
				t.Errorf("error = %v\n    want  %s", err, tt.want)
			}
			if len(s.Objects()) != 0 || len(s.Kinds()) != 0 {
				t.Errorf("an error, yet something was added: %v", s.Objects())
			}
		})
	}
}

// A billion laughs: each level doubles the one before.
func TestAliasesAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(chart + "  a0: &a0 [lol, lol]\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&b, "  a%d: &a%d [*a%d, *a%d]\n", i, i, i-1, i-1)
	}
	err := NewSet("").Add("f.yaml", []byte(b.String()))
	if err == nil || !strings.HasSuffix(err.Error(), "aliases expand to too much") {
		t.Errorf("error = %v", err)
	}
	long := chart + "  a: &a " + strings.Repeat("x", 1<<20) + "\n  b: [" + strings.Repeat("*a, ", 100) + "]\n"
	err = NewSet("").Add("f.yaml", []byte(long))
	if err == nil || !strings.HasSuffix(err.Error(), "aliases expand to too much") {
		t.Errorf("a long text that is repeated: error = %.200v", err)
	}
	some := NewSet("")
	repeated := chart + "  a: &a " + strings.Repeat("x", 1<<20) + "\n  b: [" + strings.Repeat("*a, ", 7) + "]\n"
	err = some.Add("f.yaml", []byte(repeated))
	if err != nil {
		t.Errorf("a long text that is repeated a few times: error = %.200v", err)
	}
	for i := 0; i < 10 && err == nil; i++ {
		err = some.Add("g.yaml", []byte(repeated))
	}
	if err == nil || !strings.HasSuffix(err.Error(), "the aliases of all documents together expand to too much") {
		t.Errorf("a long text that is repeated in many documents: error = %.200v", err)
	}
	few := chart + "  a: &a [x]\n  b: [*a, *a, *a]\n"
	if err := NewSet("").Add("f.yaml", []byte(few)); err != nil {
		t.Errorf("a few aliases: %v", err)
	}
	lists := "x: &x {kind: List, apiVersion: v1, items: []}\n"
	for i := range 40 {
		lists += fmt.Sprintf("x%d: &x%d {kind: List, apiVersion: v1, items: [*x%s, *x%s]}\n", i, i, prev(i), prev(i))
	}
	lists += "kind: List\napiVersion: v1\nitems: [*x39]\n"
	if err := NewSet("").Add("f.yaml", []byte(lists)); err == nil {
		t.Error("Lists that double: no error")
	}
}

func prev(i int) string {
	if i == 0 {
		return ""
	}
	return fmt.Sprint(i - 1)
}

func TestLimits(t *testing.T) {
	s := NewSet("")
	err := s.Add("f.yaml", []byte(strings.Repeat("a: b\n---\n", 2*maxDocuments)))
	if want := "f.yaml:100001:1: more than 50000 documents in one file"; fmt.Sprint(err) != want {
		t.Errorf("error = %v, want %s", err, want)
	}
	if err := s.Add("f.yaml", []byte(strings.Repeat("---\n", 1<<20))); err != nil {
		t.Errorf("empty documents: %v", err)
	}
	err = s.Add("f.yaml", []byte("a: ["+strings.Repeat("1,", bound.MaxValues)+"1]"))
	if want := "f.yaml:1:1: too many values: more than 1048576"; fmt.Sprint(err) != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

func TestDocuments(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // name@line:column
	}{
		{"empty", "", nil},
		{"comments only", "# a\n---\n# b\n", nil},
		{"null", "---\nnull\n---\n~\n", nil},
		{"two", named("a") + "---\n" + named("b"), []string{"a@1:1", "b@6:1"}},
		{"comment after the separator", "--- # first\n" + named("a") + "--- # second\n" + named("b"), []string{"a@2:1", "b@7:1"}},
		{"content after the separator", "--- " + flow("a") + "\n--- " + flow("b") + "\n", []string{"a@1:5", "b@2:5"}},
		{"end markers", named("a") + "...\n" + named("b") + "...\n", []string{"a@1:1", "b@6:1"}},
		{"directive", "%YAML 1.2\n---\n" + named("a"), []string{"a@3:1"}},
		{"CRLF", strings.ReplaceAll(named("a")+"---\n"+named("b"), "\n", "\r\n"), []string{"a@1:1", "b@6:1"}},
		{"byte order mark", "\uFEFF" + named("a") + "---\n\uFEFF" + named("b"), []string{"a@1:1", "b@6:1"}},
		{"a separator inside a text", named("a") + "data: |\n  a\n  ---\n  b\n", []string{"a@1:1"}},
		{"head comment", "# one\n# two\n\n" + named("a"), []string{"a@4:1"}},
		{"indented", "  " + strings.ReplaceAll(strings.TrimSuffix(named("a"), "\n"), "\n", "\n  ") + "\n", []string{"a@1:3"}},
		{"JSON", jsonNamed("a"), []string{"a@1:1"}},
		{"JSON values in a row", jsonNamed("a") + " " + jsonNamed("b") + "\n" + jsonNamed("c"), []string{"a@1:1", fmt.Sprint("b@1:", 2+len(jsonNamed("a"))), "c@2:1"}},
		{"JSON with separators", jsonNamed("a") + "\n---\n" + jsonNamed("b"), []string{"a@1:1", "b@3:1"}},
		{"JSON that only JSON reads", strings.Replace(jsonNamed("a"), `"v1":`, `"\/":`, 1), []string{"a@1:1"}},
		{"flow that only YAML reads", flow("a") + " # yes\n", []string{"a@1:1"}},
		{"JSON and YAML", jsonNamed("a") + "\n---\n" + named("b"), []string{"a@1:1", "b@3:1"}},
		{"List", "kind: List\napiVersion: v1\nitems:\n- " + flow("a") + "\n- " + flow("b") + "\n", []string{"a@4:3", "b@5:3"}},
		{"typed List", "kind: HelmChartList\napiVersion: source.toolkit.fluxcd.io/v1\nitems:\n- metadata: {name: a}\n", []string{"a@4:3"}},
		{"List in a List", "kind: List\napiVersion: v1\nitems:\n- kind: List\n  apiVersion: v1\n  items:\n  - " + flow("a") + "\n", []string{"a@7:5"}},
		{"List of nothing", "kind: List\napiVersion: v1\nitems: null\n---\nkind: HelmChartList\napiVersion: source.toolkit.fluxcd.io/v1\n", nil},
		{"aliased item", "x: &x " + flow("a") + "\nkind: List\napiVersion: v1\nitems: [*x]\n", []string{"a@1:4"}},
		{"another HelmChart", strings.Replace(named("a"), "source.toolkit.fluxcd.io", "helm.cattle.io", 1), nil},
		{"not an object", "foo: bar\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := NewSet("")
			if err := s.Add("f.yaml", []byte(tt.text)); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range s.Objects() {
				got = append(got, fmt.Sprintf("%s@%d:%d", o.Name, o.Pos.Line, o.Pos.Column))
				if o.Kind != "HelmChart" || o.Content["kind"] != "HelmChart" || o.Group() != SourceGroup {
					t.Errorf("%s: kind %v of %v", o, o.Content["kind"], o.Content["apiVersion"])
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("objects %v, want %v", got, tt.want)
			}
		})
	}
}

func named(name string) string {
	return "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmChart\nmetadata:\n  name: " + name + "\n"
}

func flow(name string) string {
	return "{apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, metadata: {name: " + name + "}}"
}

func jsonNamed(name string) string {
	return `{"apiVersion":"source.toolkit.fluxcd.io/v1","kind":"HelmChart","metadata":{"name":"` + name + `"},"v1":1}`
}
