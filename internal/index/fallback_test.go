package index

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

// TestUncertainCharts shows what becomes of charts that only the full parser can judge, without it reading the rest of the file: one
// that is no list is unknown, one that is null has no versions.
func TestUncertainCharts(t *testing.T) {
	const text = "apiVersion: v1\nentries:\n  gone: !!null ~\n  list: !!seq\n  - {name: list, version: 1.0.0}\n  text: !!str none\n  last:\n  - {name: last, version: 1.0.0}\n"
	o, err := Scan(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(o.strange) == 0 {
		t.Fatal("nothing is left open")
	}
	if err := o.Check(strings.NewReader(text)); err != nil || o.whole {
		t.Fatalf("%v, read by the full parser: %t", err, o.whole)
	}
	index, err := load([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := index.Charts(), []string{"gone", "last", "list"}; !slices.Equal(got, want) {
		t.Errorf("charts %q, want %q", got, want)
	}
	if _, _, err := index.Candidates("text"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("text: %v", err)
	}
	for chart, want := range map[string]int{"gone": 0, "list": 1, "last": 1} {
		if c, dropped, err := index.Candidates(chart); err != nil || len(c) != want || dropped != 0 {
			t.Errorf("%s: %v, %d dropped, %v", chart, c, dropped, err)
		}
	}
}
