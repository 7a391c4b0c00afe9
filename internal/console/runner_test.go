package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// obeyed reports whether the runner would obey a stream: lines end at \n and \r, white space before "::" is ignored, and "##["
// may be anywhere in a line.
func obeyed(text string) bool {
	for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if strings.HasPrefix(strings.TrimSpace(strings.TrimPrefix(line, "\ufeff")), "::") || strings.Contains(line, "##[") {
			return true
		}
	}
	return false
}

// logged returns the log of a text that is written in parts of n bytes.
func logged(t testing.TB, text string, n int) (string, error) {
	t.Helper()
	return loggedOf(t, text, n, maxHeld)
}

// loggedOf is logged with another limit of held bytes.
func loggedOf(t testing.TB, text string, n, most int) (string, error) {
	t.Helper()
	var b bytes.Buffer
	log := NewRunnerLog(&b)
	log.most = most
	for part := []byte(text); len(part) > 0; {
		k := min(n, len(part))
		if _, err := log.Write(part[:k]); err != nil {
			return b.String(), err
		}
		part = part[k:]
	}
	err := log.Close()
	return b.String(), err
}

func TestDefuse(t *testing.T) {
	for text, want := range map[string]string{
		"::error::x":                      ": :error::x",
		"  ::set-output name=a::b":        "  : :set-output name=a::b",
		"a\n::stop-commands::x\n\t::x\nb": "a\n: :stop-commands::x\n\t: :x\nb",
		"before ##[add-mask]x":            "before ## [add-mask]x",
		"##[##[x\n":                       "## [## [x\n",
		":: ::":                           ": : ::",
		"a\r::add-mask::x\r\n":            "a\r: :add-mask::x\r\n",
		"\u00a0\u2003\v::x":               "\u00a0\u2003\v: :x",
		"\ufeff::x":                       "\ufeff: :x",
	} {
		if !obeyed(text) {
			t.Errorf("%q is obeyed by no runner", text)
		}
		if got := defuse(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"HelmChart a::b", "#[x]", "plain\n  lines: :\n"} {
		if got := defuse(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// TestRunnerLogMeaning writes documents that a consumer of the stream reads, in the log as without it.
func TestRunnerLogMeaning(t *testing.T) {
	for _, text := range []string{
		"a: |\n  ::set-output name=a::b\n  ##[add-mask]x\nb: [1, 0x10, 1.50, 2020-01-01, ~, \"1\"]\n",
		"a: x # ##[add-mask]\n", "::a:\n  ::b: '##[c]'\n", "- >-\n  ::x::\n- &n ::y::\n- *n\n",
		"{\"a\": \"##[x]\", \"b\": [\"::x::\"]}\n", "a: \"\\r::x::\"\n", "? ::a\n: ::b\n", "a:\n  plain\n  ::x\n",
		"a: !!binary |\n  OjphOjo=\nb: '::x'\n::c: y\n",
	} {
		got, err := logged(t, text, 7)
		if err != nil || obeyed(got) {
			t.Errorf("%q becomes %q: %v", text, got, err)
		}
		var want, have any
		if err := yaml.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(got), &have); err != nil || !reflect.DeepEqual(want, have) {
			t.Errorf("%q means %v, %q means %v: %v", text, want, got, have, err)
		}
	}
	for _, text := range []string{"", "x", "a: b::c # why\n---\nb: |\n  x ::y\n", "NAME  STATE\na     ready\n", "{\"a\":\"#[\"}\n"} {
		if got, err := logged(t, text, 3); got != text || err != nil {
			t.Errorf("%q becomes %q: %v", text, got, err)
		}
	}
}

// TestRunnerLogParts alters the document alone that has a command, and holds no more than its limit.
func TestRunnerLogParts(t *testing.T) {
	clean := "# kept\na:   1\n"
	if got, err := logged(t, clean+"---\nb: |\n  ::x::\n---\n"+clean, 1); err != nil || got != clean+"---\nb: \"::x::\\n\"\n---\n"+clean {
		t.Errorf("%q: %v", got, err)
	}
	if got, err := logged(t, "a:\n  b:\n    ::x: y\n", 1); err != nil || got != "a:\n  b:\n    \"::x\": y\n" {
		t.Errorf("%q: %v", got, err)
	}
}

// TestRunnerLogBound writes more than the log holds. A long document is written in parts, as long as they contain no command.
func TestRunnerLogBound(t *testing.T) {
	const most = 20
	table := strings.Repeat("a line\n", 10)
	for _, c := range []struct {
		text, want string
		refused    bool
	}{
		{table, table, false},
		{strings.Repeat("x", most), strings.Repeat("x", most), false},
		{strings.Repeat("x", most+1), "", true},
		{"a: 123 #\nb: |\n ::x:\n", "a: 123 #\nb: \"::x:\\n\"\n", false}, // as long as it may be
		{table + " ::x::y\n", table[:63], true},                          // a command in the last part
		{"a line\n ::x::\n" + table, "", true},                           // and in the first part
		{"a line\na line\na: |\n ::x\n", "a line\na line\na: |\n", true}, // which is altered only if it is whole
		{table + "---\na: |\n ::x::\n", table + "---\na: \"::x::\\n\"\n", false},
		{"a: 1 #\na: 1 #1234567\n---\n::x: y\n", "a: 1 #\na: 1 #1234567\n---\n\"::x\": y\n", false}, // the part ends where the document does
	} {
		got, err := loggedOf(t, c.text, 7, most)
		if got != c.want || (err != nil) != c.refused {
			t.Errorf("%q becomes %q, want %q: %v", c.text, got, c.want, err)
		}
	}
	long := "a line\n" + strings.Repeat("x", most) // the rest of one write is as long as possible
	if got, err := loggedOf(t, long, len(long), most); got != long || err != nil {
		t.Errorf("%q becomes %q: %v", long, got, err)
	}
}

// TestRunnerLogLongLine writes a line in many small parts, each of which is looked at once: a million million looks would
// not end before the tests do.
func TestRunnerLogLongLine(t *testing.T) {
	line := strings.Repeat("a word, ", 1<<20) + "\n"
	if got, err := logged(t, line, 4); err != nil || got != line {
		t.Errorf("%d bytes of %d: %v", len(got), len(line), err)
	}
}

// FuzzRunnerLog: no written line is a command, and JSON keeps its values.
func FuzzRunnerLog(f *testing.F) {
	for _, text := range []string{
		"::set-output name=a::b\n", "a: |\n  ::x::y\n", "{\"a\":\"##[x]y\"}", "\r::x::y", "--- ::x::y\n---\n\u2028::x::y", "a: &b ##[c]\n", "- !##[x] y\n",
	} {
		f.Add(text, 3)
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		got, err := logged(t, text, 1+int(uint(n)%64))
		if obeyed(got) {
			t.Fatalf("%q becomes %q", text, got)
		}
		var want, have any
		if json.Unmarshal([]byte(text), &want) == nil && (err != nil || json.Unmarshal([]byte(got), &have) != nil || !reflect.DeepEqual(want, have)) {
			t.Fatalf("%q becomes %q: %v", text, got, err)
		}
	})
}

// refusing is a stream that is closed.
type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestRunnerLogRefused: a stream that cannot be written to is an error, wherever the log notices it.
func TestRunnerLogRefused(t *testing.T) {
	log := NewRunnerLog(refusing{})
	if _, err := log.Write([]byte("a: 1\n---\nb: 2\n")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the second document: %v", err)
	}
	log = NewRunnerLog(refusing{})
	if _, err := log.Write([]byte("a\n")); err != nil {
		t.Errorf("what is held is not written: %v", err)
	}
	if err := log.Close(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the end: %v", err)
	}
	log = NewRunnerLog(refusing{})
	log.most = 1
	if _, err := log.Write([]byte("a line\n")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a long document: %v", err)
	}
}

// TestRunnerLogRewritten: a document that cannot be written in another way is refused, and folded lines are no reason.
func TestRunnerLogRewritten(t *testing.T) {
	if got, err := logged(t, "::k: {a: 1, ? : 2}\n", 7); err == nil || got != "" {
		t.Errorf("%q: %v", got, err)
	}
	text, want := "# why ##[x]\n::k: 1 # ::y\nb: >\n  a\n\n\n   c\n  d\n", "# why #\\x23[x]\n\"::k\": 1 # ::y\nb: \"a\\n\\n\\n c\\nd\\n\"\n"
	if got, err := logged(t, text, 7); err != nil || got != want {
		t.Errorf("%q becomes %q, want %q: %v", text, got, want, err)
	}
}

// TestSameNodes: a text that means something else is not taken for the document.
func TestSameNodes(t *testing.T) {
	node := func(text string) *yaml.Node {
		n, err := parseOne([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, other := range []string{"a: c\n", "a: \"1\"\n", "a: &n 1\n", "a: [1]\n", "a: 1\nb: 2\n", "b: 1\n"} {
		if sameNodes(node("a: 1\n"), node(other)) || sameNodes(node(other), node("a: 1\n")) {
			t.Errorf("%q is taken for another", other)
		}
	}
	if !sameNodes(node("a: 1\n"), node("{a: 1}\n")) {
		t.Error("the same in another style is not taken")
	}
	if _, err := parseOne([]byte("a: 1\n---\nb: 2\n")); err == nil {
		t.Error("two documents are taken for one")
	}
}

// TestJSONLogOnRunner: a line of the log in JSON has no old mark, and keeps its values.
func TestJSONLogOnRunner(t *testing.T) {
	for _, github := range []bool{true, false} {
		var b bytes.Buffer
		c := New(&b)
		c.Configure(Options{JSON: true, GitHub: github, Now: time.Now})
		c.Warn("text ##[add-mask]x")
		var record struct{ Msg string }
		if err := json.Unmarshal(b.Bytes(), &record); err != nil || record.Msg != "text ##[add-mask]x" {
			t.Errorf("%s: %v", b.String(), err)
		}
		if obeyed(b.String()) == github {
			t.Errorf("on a runner %t: %s", github, b.String())
		}
	}
}
