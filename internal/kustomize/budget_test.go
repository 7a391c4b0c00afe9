package kustomize

import (
	"errors"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestBudget counts what all builds of a run keep and do, in proportion to what they read.
func TestBudget(t *testing.T) {
	for _, test := range []struct {
		read, weight, work int64
		ok                 bool
	}{
		{0, baseMemory, 0, true}, {0, baseMemory + 2, 0, false}, {100, baseMemory + 100*memoryShare, 0, true}, {100, baseMemory + 100*memoryShare + 2, 0, false},
		{0, 0, baseWork - 4*readWork, true}, {0, 0, baseWork, false}, {1 << 20, 0, baseWork + workShare<<20 - 4*readWork - 2*byteWork<<20, true}, {1 << 20, 0, baseWork + workShare<<20, false},
	} {
		ended := 0
		b := NewBudget(func(error) { ended++ })
		err := errors.Join(b.Read("a", "a", int(test.read)), b.Read("a", "a", int(test.read)), // the same file
			b.Keep("a", test.weight/2), b.Keep("b", test.weight/2), b.Work("a", test.work/2), b.Work("b", test.work/2))
		if (err == nil) != test.ok || (b.Failure() == nil) != test.ok || test.ok == (ended == 1) {
			t.Errorf("%+v: %v, failure %v, ended %d times", test, err, b.Failure(), ended)
		}
	}
}

// TestComparisons counts what kustomize does where it resolves anchors.
func TestComparisons(t *testing.T) {
	for text, want := range map[string]int64{
		"a": 0, "[a, b, c]": 0, "{a: b}": 1, "{a: b, c: d, e: {f: g}}": 9 + 1,
		"{a: &x {b: c, d: e}, f: *x, g: [*x, *x]}": 9 + 4*4,
		"&x {a: &y [*y], b: *x}":                   4,
		"{<<: [{a: b}, {c: d, e: f}], g: h}":       4 + 1 + 4,
	} {
		var n yaml.Node
		if err := yaml.Unmarshal([]byte(text), &n); err != nil {
			t.Fatal(err)
		}
		if got := comparisons(&n, map[*yaml.Node]int64{}); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// TestAnchored refuses a file whose anchors take far more work to resolve than it is long.
func TestAnchored(t *testing.T) {
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: &a {" + strings.Repeat("a: b, ", 2000) + "}\nmore: ["
	for aliases, refused := range map[int]bool{1: false, 1000: true} {
		b := &Build{Budget: NewBudget(func(error) {}), What: "k"}
		_, err := b.Objects([]byte(object + strings.Repeat("*a,", aliases) + "]\n"))
		var exhausted *ExhaustedError
		if errors.As(err, &exhausted) != refused {
			t.Errorf("%d aliases: %v", aliases, err)
		}
	}
}
