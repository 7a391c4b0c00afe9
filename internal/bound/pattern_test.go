package bound

import (
	"errors"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

func TestSteps(t *testing.T) {
	const kib = 1 << 10
	for _, test := range []struct {
		pattern       string
		size, matches int
		refused       bool
	}{
		{`^main-[a-f0-9]+-(?P<ts>[0-9]+)$`, 100_000 * 45, 1, false},
		{`v(.*)`, 5 << 20, 1, false},
		{`[^a-z0-9]+`, 500 * kib, 500 * kib, false},
		{`\s+|,`, 500 * kib, 500 * kib, false},
		{`(?i)^release/(.+)$`, 2 * kib, 2 * kib, false},
		{`x*y|x`, kib, kib, false},
		{`x*y|x`, 20_000, 20_000, true},
		{`(?:x.*y)|x`, 20_000, 20_000, true},
		{`(?:x+z)+`, 20_000, 20_000, true},
		{`(x?){30,}y|x`, 20_000, 20_000, true},
		{`(((x?){10}){10}){10}y`, 1 << 20, 1, true},
		{`(((x?){10}){10}){10}y`, kib, 1, false},
		{`((ab?c?){10}){100}`, kib, kib, true},
		{`[`, 1 << 30, 1 << 30, false},
		{`x`, 0, 0, false},
	} {
		if n := Steps(test.pattern, test.size, test.matches); n >= maxWork != test.refused {
			t.Errorf("%s, %d matches in %d bytes: %d steps", test.pattern, test.matches, test.size, n)
		}
	}
}

func TestInstructions(t *testing.T) {
	for pattern, want := range map[string]int{"a": 1, "abc": 3, "(abc)": 4, "[ab]": 1, "a{5}": 10, "a{2,7}": 14, "(?:ab){3,}": 9} {
		re, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if got := instructions(re); got != want {
			t.Errorf("%s: %d, want %d", pattern, got, want)
		}
	}
}

func TestRereads(t *testing.T) {
	for pattern, want := range map[string]bool{
		"a*": false, "a+b": true, "ba+": false, "a{2,}b": true, "a{2,5}b": false, "(?:a*)": false, "(?:a*)*": true, "a*|b": false, "a|b*": false, "(a*|b)c": true, "c(?:a|b*)": false, "abc": false,
	} {
		re, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if got := rereads(re, true); got != want {
			t.Errorf("%s: %t", pattern, got)
		}
	}
}

// TestMatchRoom: a number of steps equal to the limit is refused.
func TestMatchRoom(t *testing.T) {
	for size, refused := range map[int]bool{maxWork/4 - 2: false, maxWork/4 - 1: true} {
		if err := Match([]string{strings.Repeat("x", size)}, "abcd"); (err != nil) != refused {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if n := Steps("abcd", maxWork/4, 1); n != maxWork {
		t.Errorf("%d steps", n)
	}
	if n := Steps("abcd", maxWork/4-1, 1); n != maxWork-4 {
		t.Errorf("%d steps", n)
	}
}

func TestMatch(t *testing.T) {
	tags := slices.Repeat([]string{"main-5f488f7568fa60615e298567acfe5d58ed288f5c-1700000000"}, 100_000)
	if err := Match(tags, `^main-[a-f0-9]+-(?P<ts>[0-9]+)$`); err != nil {
		t.Errorf("100,000 tags: %v", err)
	}
	for _, patterns := range [][]string{{`((x?){10}){100}y`}, slices.Repeat([]string{`^v[0-9]`}, 50)} {
		if err := Match(tags, patterns...); !errors.Is(err, ErrPattern) {
			t.Errorf("%s on 100,000 tags: %v", patterns, err)
		}
	}
}

// TestPattern spends the steps of a pattern on all texts together.
func TestPattern(t *testing.T) {
	p, err := Compile(`((x?){10}){10}y`)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", maxWork/p.steps/3) + "y"
	for i := range 4 {
		found, err := p.Match(text)
		long := errors.Is(err, ErrPattern)
		if late := i > 1; long != late || found == late {
			t.Errorf("match %d: %v, %v", i, found, err)
		}
	}
	if _, err := Compile("["); err == nil {
		t.Error("compiled")
	}
}

// FuzzInstructions compares the estimate with the compiler.
func FuzzInstructions(f *testing.F) {
	for _, seed := range []string{`a`, `(a|b)*c`, `((x?){10}){10}`, `\pL+`, `a{3,}`, `a{2,5}?`, `(?i)abc`, `^$|\b`, `[a-z]{0,20}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		re, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			return
		}
		estimate := instructions(re)
		prog, err := syntax.Compile(re.Simplify())
		if err != nil {
			return
		}
		if n := len(prog.Inst); n > 3*estimate+3 {
			t.Errorf("%q has %d instructions, estimated %d", pattern, n, estimate)
		}
	})
}
