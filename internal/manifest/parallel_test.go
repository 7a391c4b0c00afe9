package manifest

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

func TestParallelOrder(t *testing.T) {
	const n = 100
	var given, worked atomic.Int32
	items := func(yield func(*int) bool) {
		for i := range n {
			given.Add(1)
			if !yield(&i) {
				return
			}
		}
	}
	work := func(i *int) {
		worked.Add(1)
		*i *= 2
	}
	var got []int
	for i := range inParallel(iter.Seq[*int](items), work) {
		got = append(got, *i)
	}
	want := make([]int, n)
	for i := range want {
		want[i] = 2 * i
	}
	if !slices.Equal(got, want) || worked.Load() != n {
		t.Errorf("%d worked on, got %v", worked.Load(), got)
	}

	given.Store(0)
	for i := range inParallel(iter.Seq[*int](items), work) {
		if *i == 6 {
			break
		}
	}
	if given.Load() == n {
		t.Error("all items are taken although nobody wants them")
	}
	for range inParallel(slices.Values([]*int{}), work) {
		t.Error("an item of none")
	}
}

// After a failure no more documents of a file are read, not even ahead.
func TestPiecesOfAFailure(t *testing.T) {
	text := []byte("{\n" + strings.Repeat("---\na: 1\n", 100))
	l := &loader{in: &Input{}, seen: &files{}, parsing: &parsing{}, read: []*File{{Name: "a.yaml", data: text}, {Name: "b.yaml", data: []byte("a: 1\n")}}}
	var got []string
	for p := range l.pieces(l.read) {
		got = append(got, p.file.Name)
		if p.file.Name == "a.yaml" {
			p.file.fail(errors.New("it is broken"))
		}
	}
	if !slices.Equal(got, []string{"a.yaml", "b.yaml"}) {
		t.Errorf("got %q", got)
	}
}

// The objects are in the order of the file names for any number of files and failures, and a file that cannot be used
// has no objects.
func TestLoadOrder(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for i := range 60 {
		text := strings.Repeat("# comment\n", i*300%9000) // some are too long to be read ahead
		for j := range i % 4 {
			text += fmt.Sprintf("---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmChart\nmetadata: {name: c-%d-%d}\n", i, j)
		}
		if i%10 == 7 {
			text += "---\n{"
		} else {
			for j := range i % 4 {
				want = append(want, fmt.Sprintf("c-%d-%d", i, j))
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.yaml", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, errs := Load(t.Context(), Options{Files: []string{dir}})
	var got []string
	for _, o := range set.Objects() {
		got = append(got, o.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	var positions []string
	for _, err := range errs {
		position, _, _ := strings.Cut(filepath.Base(err.Error()), ":")
		positions = append(positions, position)
	}
	if !slices.Equal(positions, []string{"07.yaml", "17.yaml", "27.yaml", "37.yaml", "47.yaml", "57.yaml"}) {
		t.Errorf("errors %q", errs)
	}
}
