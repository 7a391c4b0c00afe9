package edit

import (
	"bytes"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// set replaces every scalar whose value is OLD.
func set(t *testing.T, text, value string) string {
	t.Helper()
	f := Parse([]byte(text))
	n := 0
	for _, d := range f.Documents() {
		for _, node := range scalars(d.Root) {
			if strings.TrimSpace(node.Value) != "OLD" {
				continue
			}
			n++
			if err := d.Set(node, value); err != nil {
				t.Fatalf("Set: %v", err)
			}
		}
	}
	if n == 0 {
		t.Fatal("the text has no scalar OLD")
	}
	out, edits, refusals := f.Apply()
	for _, err := range refusals {
		t.Error(err)
	}
	if edits != n {
		t.Errorf("%d edits, want %d", edits, n)
	}
	return string(out)
}

// scalars lists the values of maps and lists, without keys and without the targets of aliases.
func scalars(n *yaml.Node) []*yaml.Node {
	if n == nil {
		return nil
	}
	if n.Kind == yaml.ScalarNode {
		return []*yaml.Node{n}
	}
	var found []*yaml.Node
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			continue
		}
		found = append(found, scalars(child)...)
	}
	return found
}

// Lines of a block that stay are the bytes that they were.
func TestSetLines(t *testing.T) {
	f := Parse([]byte("a: |- # c\n    one\n   \n      x \n    two\n\nb: 1\n"))
	if err := f.Documents()[0].Set(scalars(f.Documents()[0].Root)[0], "one\n\n  x \n2"); err != nil {
		t.Fatal(err)
	}
	if got, _, refusals := f.Apply(); string(got) != "a: |- # c\n    one\n   \n      x \n    2\n\nb: 1\n" {
		t.Errorf("got %q, refused %v", got, refusals)
	}
}

func TestSet(t *testing.T) {
	for name, tt := range map[string]struct{ text, value, want string }{
		"plain":               {"a: OLD # c\n", "1.2.1", "a: 1.2.1 # c\n"},
		"single quotes":       {"a: 'OLD'\n", "it's", "a: 'it''s'\n"},
		"double quotes":       {"a: \"OLD\"\n", `a"\b`, `a: "a\"\\b"` + "\n"},
		"escapes":             {`a: "O\u004cD" # c` + "\n", "new", `a: "new" # c` + "\n"},
		"number":              {"a: OLD\n", "42", "a: \"42\"\n"},
		"two numbers":         {"a: OLD\n", "1.10", "a: \"1.10\"\n"},
		"date":                {"a: OLD\n", "2024-01-02", "a: \"2024-01-02\"\n"},
		"on":                  {"a: OLD\n", "on", "a: \"on\"\n"},
		"null":                {"a: OLD\n", "null", "a: \"null\"\n"},
		"octal":               {"a: OLD\n", "0o17", "a: \"0o17\"\n"},
		"underscore":          {"a: OLD\n", "1_000", "a: \"1_000\"\n"},
		"exponent":            {"a: OLD\n", "1e3", "a: \"1e3\"\n"},
		"empty":               {"a: OLD\n", "", "a: \"\"\n"},
		"hash":                {"a: OLD\n", "x #y", "a: \"x #y\"\n"},
		"CRLF, BOM, no end":   {"\ufeffb: 1\r\na: OLD", "new", "\ufeffb: 1\r\na: new"},
		"lone CR":             {"b: 1\ra: OLD\r", "new", "b: 1\ra: new\r"},
		"first, with a BOM":   {"\ufeffa: OLD\n", "new", "\ufeffa: new\n"},
		"line separator":      {"b: \"x\u2028y\"\na: OLD\n", "new", "b: \"x\u2028y\"\na: new\n"},
		"wide letters":        {"{b: é€😀, a: OLD}\n", "new", "{b: é€😀, a: new}\n"},
		"flow":                {"{a: OLD, b: 'OLD'} # c\n", "x,y", "{a: \"x,y\", b: 'x,y'} # c\n"},
		"list":                {"-   OLD\n- - OLD\n", "new", "-   new\n- - new\n"},
		"anchor and aliases":  {"a: &x OLD\nb: *x\nc:\n  <<: {d: 1}\n  e: *x\n", "new", "a: &x new\nb: *x\nc:\n  <<: {d: 1}\n  e: *x\n"},
		"tag":                 {"a: !!str OLD\nb: !own OLD\n", "12", "a: !!str 12\nb: !own 12\n"},
		"tag and anchor":      {"a: &x !!str\n  OLD\n", "new", "a: &x !!str\n  new\n"},
		"literal block":       {"a: |  # c\n    OLD\n\nb: 1\n", "new", "a: |-  # c\n    new\n\nb: 1\n"},
		"folded block":        {"a:\n  - >+2\n      OLD\n\n  - x\n", "new", "a:\n  - >-\n      new\n\n  - x\n"},
		"block in an item":    {"- a: |2\n    OLD\n  b: y\n", "new", "- a: |-\n    new\n  b: y\n"},
		"block, two dashes":   {"x:\n- - a: |1\n     OLD\n    b: y\n", "new", "x:\n- - a: |-\n     new\n    b: y\n"},
		"block at the end":    {"a: |\n  OLD", "new", "a: |-\n  new"},
		"block with CRLF":     {"a: |\r\n  OLD\r\nb: 1\r\n", "new", "a: |-\r\n  new\r\nb: 1\r\n"},
		"more lines, CRLF":    {"a: |\r\n  OLD\r\nb: 1\r\n", "new\nmore\n", "a: |\r\n  new\r\n  more\r\nb: 1\r\n"},
		"value below":         {"a:\n    # c\n    OLD\n", "new", "a:\n    # c\n    new\n"},
		"documents":           {"---\na: OLD\n---\n# only a comment\n---\n\n--- {a: OLD}\n...\n---\nb: OLD\n", "new", "---\na: new\n---\n# only a comment\n---\n\n--- {a: new}\n...\n---\nb: new\n"},
		"beside a broken one": {"a: OLD\n---\na: [\n---\na: OLD\n", "new", "a: new\n---\na: [\n---\na: new\n"},
		"directive":           {"%YAML 1.1\n---\na: OLD\n", "new", "%YAML 1.1\n---\na: new\n"},
		"on two lines":        {"a: \"OLD\\\n  \"\n", "new", "a: \"new\"\n"},
		"duplicate keys":      {"a: OLD\na: OLD\n", "new", "a: new\na: new\n"},
		"tabs and blanks":     {"a:\tOLD  \t\n", "new", "a:\tnew  \t\n"},
		"JSON":                {"{\n\t\"a\": \"OLD\"\n}", "new", "{\n\t\"a\": \"new\"\n}"},
		"next line":           {"a: OLD\u0085b: OLD\n", "new", "a: new\u0085b: new\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := set(t, tt.text, tt.value); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// A value of several lines in the text is one line afterwards.
func TestSetFolded(t *testing.T) {
	f := Parse([]byte("a: one\n  two\n\n  three # c\nb: 1\n"))
	d := f.Documents()[0]
	if err := d.Set(d.Root.Content[1], "new"); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := f.Apply(); string(got) != "a: new # c\nb: 1\n" {
		t.Errorf("got %q", got)
	}
}

// A number, a boolean, null or a date becomes a string.
func TestSetTypes(t *testing.T) {
	for _, old := range []string{"1.0", "true", "~", "2024-01-02", "7"} {
		f := Parse([]byte("version: " + old + "\n"))
		d := f.Documents()[0]
		if err := d.Set(d.Root.Content[1], "1.2.1"); err != nil {
			t.Fatal(err)
		}
		if got, _, _ := f.Apply(); string(got) != "version: 1.2.1\n" {
			t.Errorf("%s: got %q", old, got)
		}
	}
}

func TestSetRefused(t *testing.T) {
	for text, reason := range map[string]string{
		"b: &x 1\na: *x\n": "the value is the alias *x: edit the value at the anchor &x",
		"a:\n":             "there is no value to replace",
		"a: {b: 1}\n":      "the value is not a scalar",
		"a: [1]\n":         "the value is not a scalar",
	} {
		f := Parse([]byte(text))
		d := f.Documents()[0]
		node := d.Root.Content[len(d.Root.Content)-1]
		if err := d.Set(node, "new"); err == nil || err.Error() != reason {
			t.Errorf("%q: got %v, want %s", text, err, reason)
		}
		if got, n, _ := f.Apply(); string(got) != text || n != 0 {
			t.Errorf("%q became %q", text, got)
		}
	}
	if d := Parse([]byte("  a: b\nc: d\n")).Documents()[0]; d.Root != nil || d.Err == nil || strings.Contains(d.Err.Error(), "a second document") {
		t.Errorf("two documents without a separator: %v", d.Err)
	}
	for _, value := range []string{"a\nb", "a\x1b[0m", "a\u2028b", "\xff"} {
		f := Parse([]byte("a: x\n"))
		d := f.Documents()[0]
		if err := d.Set(d.Root.Content[1], value); err == nil {
			t.Errorf("%q was accepted", value)
		}
	}
}

// The last of two values counts, and the old value is no edit.
func TestSetAgain(t *testing.T) {
	f := Parse([]byte("a: x\nb: y\n"))
	d := f.Documents()[0]
	for _, value := range []string{"one", "two"} {
		if err := d.Set(d.Root.Content[1], value); err != nil {
			t.Fatal(err)
		}
	}
	if got, n, _ := f.Apply(); string(got) != "a: two\nb: y\n" || n != 1 {
		t.Errorf("got %q with %d edits", got, n)
	}
	if err := d.Set(d.Root.Content[1], "x"); err != nil {
		t.Fatal(err)
	}
	if got, n, _ := f.Apply(); string(got) != "a: x\nb: y\n" || n != 0 {
		t.Errorf("got %q with %d edits", got, n)
	}
}

func TestLine(t *testing.T) {
	f := Parse([]byte("a: 1\r\n---\r\nb: \"x\u2028y\"\r\nc: 2\r\n"))
	d := f.Documents()[1]
	if got := d.Line(d.Root.Content[3]); got != 4 {
		t.Errorf("line %d, want 4", got)
	}
}

// FuzzSet checks the rule of the package: the parsed documents before and after an edit differ in one place.
func FuzzSet(f *testing.F) {
	for _, seed := range []string{
		"a: x # c\n", "- 'x'\n- \"y\\u00e9\"\n", "{a: b, c: [d, &e f, *e]}\n", "a: |\n  b\n  c\nd: >-\n\n  e\n",
		"\ufeffa: b\r\n---\r\nc: d", "a: b\u0085c: d\n", "a: !!str\n  b\n", "? a\n: b\n", "--- a\n...\n--- b\n", "a: one\n  two\n\n  three\n",
	} {
		f.Add(seed, uint8(0), "1.2.1")
		f.Add(seed, uint8(1), "yes")
	}
	f.Fuzz(func(t *testing.T, text string, which uint8, value string) {
		if len(text) > 4096 {
			return
		}
		file := Parse([]byte(text))
		at := int(which)
		for _, d := range file.Documents() {
			nodes := scalars(d.Root)
			if at >= len(nodes) {
				at -= len(nodes)
				continue
			}
			node := nodes[at]
			if node.Value == value || d.Set(node, value) != nil {
				return
			}
			got, edits, refusals := file.Apply()
			if (edits == 0) != (refusals[node] != nil) || edits == 0 && !bytes.Equal(got, []byte(text)) {
				t.Fatalf("%d edits, refused: %v", edits, refusals[node])
			}
			if edits == 1 {
				compare(t, file, Parse(got), node, value)
			}
			return
		}
	})
}

func compare(t *testing.T, before, after *File, edited *yaml.Node, value string) {
	t.Helper()
	if len(before.Documents()) != len(after.Documents()) {
		t.Fatalf("%d documents became %d", len(before.Documents()), len(after.Documents()))
	}
	for i, d := range before.Documents() {
		if d.Err != nil {
			continue
		}
		old, now := scalars(d.Root), scalars(after.Documents()[i].Root)
		if len(old) != len(now) {
			t.Fatalf("%d scalars became %d", len(old), len(now))
		}
		for j, n := range old {
			want := n.Value
			if n == edited {
				want = value
			}
			if now[j].Value != want {
				t.Fatalf("scalar %d is %q, want %q", j, now[j].Value, want)
			}
		}
	}
}

// TestLengths: the length of the text of a scalar, 0 for another kind. A quote without an end extends to the end of the text.
func TestLengths(t *testing.T) {
	for kind, texts := range map[string]map[string]int{
		"double quoted": {`""`: 2, `"a\"b" c`: 6, `"a\\" b`: 5, `"a`: 2, `"a\"`: 4, `'a'`: 0, `a""`: 0},
		"single quoted": {`''`: 2, `'a''b' c`: 6, `'a'`: 3, `'a' 'b'`: 3, `'a''`: 4, `'a`: 2, `"a"`: 0, `'''`: 3, `''''`: 4},
		"block": {
			"|\n  a\n b": 5, "|\n  a\n\n  b\n\n": 10, ">-\r\n  a\r\n  b\r\nc": 12, "|\na\n": 0, "|\n\n   a\n  b": 7, "|\n \t\n  a": 8, "|\n": 0, "a|\n  b": 0, "|2\n  a": 6,
			"|1\n    a\n b\nc": 11, ">-1 # c\n  a\n b\n": 14,
		},
		"plain":   {"a b c": 3, "a  b": 0, "a\n  b": 5, "a\n\nb": 0, "a": 0, "ab": 0, "a\r\n b": 5},
		"plain a": {"a": 1, "ab": 1, "b": 0, "": 0},
		"folded":  {"a\n\nb": 4, "a\n\n\nb": 0, "a\nb": 0, "a\r\n \r\n b": 8},
	} {
		for text, want := range texts {
			length := map[string]func() int{
				"double quoted": func() int { return QuotedLength(text, '"') }, "single quoted": func() int { return QuotedLength(text, '\'') },
				"block": func() int { return block([]byte(text), 0) }, "plain": func() int { return plain([]byte(text), "a b") },
				"plain a": func() int { return plain([]byte(text), "a") }, "folded": func() int { return plain([]byte(text), "a\nb") },
			}[kind]
			if got := length(); got != want {
				t.Errorf("%s: %q has the length %d, want %d", kind, text, got, want)
			}
		}
	}
}

// TestSafe: an edit must change its value, and nothing else.
func TestSafe(t *testing.T) {
	becomes := func(text, after string, edit func(root *yaml.Node) splice) bool {
		d := Parse([]byte(text)).documents[0]
		s := splice{}
		if edit != nil {
			s = edit(d.Root)
		}
		s.end, s.text = len(text), after
		return d.safe([]splice{s})
	}
	const text = "# h\na: &x 1 # l\nb: {c: d}\n"
	for after, want := range map[string]bool{
		text: true, "# h\na: &x 1 # l\nb:\n  c: d\n": true, "": false,
		"# g\na: &x 1 # l\nb: {c: d}\n": false, "# h\na: &x 1 # k\nb: {c: d}\n": false, "# h\na: &y 1 # l\nb: {c: d}\n": false, "# h\na: &x '1' # l\nb: {c: d}\n": false,
		"# h\na: &x 2 # l\nb: {c: d}\n": false, "# h\na: &x 1 # l\nb: {c: e}\n": false, "# h\na: &x 1 # l\nb: [c, d]\n": false, "# h\na: &x 1 # l\nb: {c: d, e: f}\n": false, text + "# f\n": false,
	} {
		if got := becomes(text, after, nil); got != want {
			t.Errorf("%q: %v", after, got)
		}
	}
	value := func(root *yaml.Node) splice { return splice{node: root.Content[1], value: "x"} }
	for after, want := range map[string]bool{"a: x": true, "a: 'x'": true, "a: 1": false, "a: y": false, "a: !!str x": true, "a: !t x": false, "a: [x]": false} {
		if got := becomes("a: 1", after, value); got != want {
			t.Errorf("edited to %q: %v", after, got)
		}
	}
	if !becomes("a: !t &y 1\nb: *y", "a: !t &y x\nb: *y", value) || !becomes("a: &y 1\nb: *y", "a: &y x\nb: *y", value) {
		t.Error("a tag or an alias is in the way")
	}
	fields := func(root *yaml.Node) splice {
		return splice{node: root, fields: &fieldsEdit{key: "a", behind: true, fields: []Field{{Key: "k", Value: "v", Comment: "# c"}}}}
	}
	for after, want := range map[string]bool{"a: 1\nk: v": true, "a: 1\nk: v # c": true, "k: v\na: 1": false, "a: 1": false, "a: 1\nk: w": false, "a: 1\nk: &x [v]": false, "a: 1\nv: k": false, "a: 1\nk: v\nb: 2": false, "a: 2\nk: v": false} {
		if got := becomes("a: 1", after, fields); got != want {
			t.Errorf("inserted %q: %v", after, got)
		}
	}
}

// TestSafeAmong: only the edits that change more than their values are refused, as long as the budget lasts.
func TestSafeAmong(t *testing.T) {
	edited := func() *Document {
		d := Parse([]byte("a: 1\nb: 2\nc: 3\nd: 4\ne: 5\n")).documents[0]
		for i := range 5 {
			text := "x"
			if i == 1 || i == 4 {
				text = "x # more"
			}
			d.put(splice{node: d.Root.Content[2*i+1], value: "x", start: 5*i + 3, end: 5*i + 4, text: text})
		}
		return d
	}
	for budget, kept := range map[int]int{maxReread: 3, 0: 0, 26: 0, 60: 1} {
		d, refusals := edited(), map[*yaml.Node]error{}
		got := d.safeSplices(refusals, &budget)
		if len(got) != kept || len(refusals) != 5-kept {
			t.Errorf("%d edits are kept, want %d; refused %v", len(got), kept, refusals)
		}
		if refusals[d.Root.Content[3]] == nil || refusals[d.Root.Content[9]] == nil {
			t.Errorf("refused %v", refusals)
		}
	}
}
