package tree

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// TestSums lists the files below a directory, each by its content.
func TestSums(t *testing.T) {
	root := planted(t, map[string]string{"a/one": "1", "a/b/two": "2", "a/same": "1", "ab/other": "3", "top": "4"})
	data := archive(t, root, Options{})
	for below, want := range map[string][]string{
		"a": {"b/two", "one", "same"}, "a/b": {"two"}, "nothing": nil, ".": {"a/b/two", "a/one", "a/same", "ab/other", "top"},
	} {
		sums, err := Sums(t.Context(), bytes.NewReader(data), below, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(sums)); !slices.Equal(got, want) {
			t.Errorf("below %s: %v, want %v", below, got, want)
		}
		if below == "a" && (sums["one"] != sums["same"] || sums["one"] == sums["b/two"]) {
			t.Errorf("%v", sums)
		}
	}
	var limit *finding.Problem
	if _, err := Sums(t.Context(), bytes.NewReader(data), "a", Limits{Entries: 2}); !errors.As(err, &limit) {
		t.Errorf("more entries than the limit: %v", err)
	}
	if _, err := Sums(t.Context(), bytes.NewReader(data), "a", Limits{Total: 100}); !errors.As(err, &limit) {
		t.Errorf("more bytes than the limit: %v", err)
	}
	for name, broken := range map[string][]byte{"cut off": data[:len(data)/2], "no archive": []byte("hello"), "nothing": nil} {
		if _, err := Sums(t.Context(), bytes.NewReader(broken), "a", Limits{}); err == nil {
			t.Errorf("%s is read", name)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := Sums(ended, bytes.NewReader(data), "a", Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}
