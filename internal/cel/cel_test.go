package cel

import (
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
)

// operators returns the environment in which flux-operator and the controllers parse expressions.
func operators(t testing.TB) *celgo.Env {
	t.Helper()
	env, err := celgo.NewEnv(celgo.HomogeneousAggregateLiterals(), celgo.EagerlyValidateDeclarations(true), celgo.DefaultUTCTimeZone(true),
		celgo.CrossTypeNumericComparisons(true), celgo.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders())
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// TestCheck refuses the expressions that the operator refuses, with their position.
func TestCheck(t *testing.T) {
	env := operators(t)
	for text, want := range map[string]string{
		"status.phase ==":            "line 1, column 16: the expression ends too early",
		"(a":                         "line 1, column 3: the expression ends too early",
		"a)":                         `line 1, column 2: unexpected ")"`,
		"a ? b":                      "line 1, column 6: the expression ends too early",
		"a ? b :":                    "line 1, column 8: the expression ends too early",
		"'a":                         `line 1, column 1: not part of an expression: "'a"`,
		"a &&\n  'é' = 'b'":          `line 2, column 7: not part of an expression: "= 'b'"`,
		"a b":                        `line 1, column 3: unexpected "b"`,
		"a[1":                        "line 1, column 4: the expression ends too early",
		"{a}":                        `line 1, column 3: unexpected "}"`,
		"[1 2]":                      `line 1, column 4: unexpected "2"`,
		"f(1 2)":                     `line 1, column 5: unexpected "2"`,
		"a.1":                        `line 1, column 2: unexpected ".1"`,
		"a.":                         "line 1, column 3: the expression ends too early",
		"a in":                       "line 1, column 5: the expression ends too early",
		"in":                         `line 1, column 1: unexpected "in"`,
		"a.b(){c: 1}":                `line 1, column 6: unexpected "{"`,
		"a; b":                       `line 1, column 2: not part of an expression: "; b"`,
		"true // yes\n&":             `line 2, column 1: not part of an expression: "&"`,
		" ":                          "line 1, column 2: the expression ends too early",
		strings.Repeat("(", 300):     "line 1, column 251: more than 250 nested expressions",
		strings.Repeat(" ", 100_001): "more than 100000 characters",
	} {
		got := check(text)
		if got == nil || got.Error() != want {
			t.Errorf("%.20q: %v, want %s", text, got, want)
		}
		if _, issues := env.Parse(text); issues.Err() == nil {
			t.Errorf("%.20q: the operator reads it", text)
		}
	}
}

// FuzzCheck refuses no expression that the operator accepts.
func FuzzCheck(f *testing.F) {
	for _, text := range []string{
		"true", "status.phase == 'Ready'", "has(status.x)", "x.all(y, y > 1)", "x.map(a, b, c)",
		"status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True' && e.observedGeneration == metadata.generation)",
		"status.?phase.orValue('') == 'x'", "a[?'b'].hasValue()", "{?'a': b}", "[?a]", "x.optMap(y, y + 1)",
		`data["a.b"] in ["c", 'd', r'\e', b"f", """g"""]`, `"""a\""""`, `'''a'b'''`, `b'\x00'`, `br'a'`, `bR'\'`, `'a\'b'`, `"\u00e9\"" + '\U0001F600'`,
		"a ? b : c ? d : e", "1u + 0x1F - 1.5e3", "1e3 < 2E-5 || 0xFFu > 1U", ".5", "!-1", "--1", "!!a", "a-1", "a - -1", "1.5.x", "1 .x", "-a.b",
		"a.b.c()", "f()", ".f(a, b)", ".a.b", "// text\ntrue", "true // text", "a\t\r\n\f+b", "a.for", "trueish && nullable && inn",
		"[,]", "{,}", "{'a': 1,}", "[1,]", "A{b: 1,}", "a.b.C{d: e}", "{1: {2: [3]}}", "sets.contains([1], [1])", "'\u00e9'",
	} {
		f.Add(text)
	}
	for _, n := range []int{100, 240, 249, 250, 251} {
		f.Add(strings.Repeat("(", n) + "a" + strings.Repeat(")", n))
		f.Add(strings.Repeat("[", n) + strings.Repeat("]", n))
		f.Add(strings.Repeat("a?b:", n) + "c")
		f.Add(strings.Repeat("!", n) + "a")
	}
	env := operators(f)
	f.Fuzz(func(t *testing.T, text string) {
		if _, issues := env.Parse(text); issues.Err() != nil {
			return
		}
		if err := check(text); err != nil {
			t.Errorf("%q: %v, and the operator reads it", text, err)
		}
	})
}
