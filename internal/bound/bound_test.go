package bound

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		text    string
		refused bool
	}{
		"a long string":      {"a: " + strings.Repeat("x", 8*MaxValues), false},
		"flow":               {"[" + strings.Repeat("a,", MaxValues) + "]", true},
		"lists in lists":     {strings.Repeat("[", 2*MaxValues), true},
		"lines":              {strings.Repeat("-\n", MaxValues+1), true},
		"lists in a line":    {strings.Repeat("- ", MaxValues+1), true},
		"JSON":               {`{"a":[` + strings.Repeat("0,", MaxValues) + "0]}", true},
		"other line ends":    {strings.Repeat("-\u2028", MaxValues+1), true},
		"maps":               {"[" + strings.Repeat(`{"a":0},`, MaxValues/3+1) + "0]", true},
		"JSON over lines":    {"[\n" + strings.Repeat("0,\n", MaxValues-1) + "0]", false},
		"as many as allowed": {"a: [" + strings.Repeat("a,", MaxValues-2) + "]", false},
	} {
		err := Check([]byte(test.text))
		if errors.Is(err, ErrValues) != test.refused {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestValues(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "a": 0, "a: b": 1, "a:b": 0, "a:": 1, "a:\tb": 1, "\"a\":b": 1, "'a':b": 1, "-": 1, "- a": 1, "a-b": 0, "? a": 1, "?a": 0,
		"[a, b]": 2, "{a: b}": 2, "a\n": 1, "a,\n": 1, "[\n": 1, "{\n": 1, "a\r\n": 1, "a\rb": 1,
		"\u0085": 1, "\u2028\u2029": 2, "\u00a8\u00a9": 0, "\u0145": 0, "\u8085": 0,
	} {
		if got := Values([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// FuzzValues compares the count with the parser: a text has at most two values for each separator, and three more.
func FuzzValues(f *testing.F) {
	for _, seed := range []string{"a: b\n", "[a, b]", "{a, b}", "- - - a\n", "? a\n: b\n", "[? , ? ]", "[: , : ]", "?\n?\n", `{"a":"b"}`, "-\n-\n", "{'a':[]}", "- ? - a", "a:\tb", "-\r-\r-\u2028-\u0085-", "a: &a b\nc: *a", "[a: b, c: d]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer func() { _ = recover() }() // the parser is known to panic on some malformed text
		var root yaml.Node
		if yaml.NewDecoder(bytes.NewReader(text)).Decode(&root) != nil {
			return
		}
		if nodes, n := count(&root), Values(text); nodes > 3*n+4 {
			t.Errorf("%q has %d values, counted %d", text, nodes, n)
		}
	})
}

func count(n *yaml.Node) int {
	sum := 1
	for _, child := range n.Content {
		sum += count(child)
	}
	return sum
}
