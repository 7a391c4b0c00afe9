package load

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/exit"
)

// TestChoose chooses clusters by names and patterns, in the order of the input, each once.
func TestChoose(t *testing.T) {
	var all []*Cluster
	for _, name := range []string{"clusters/east", "clusters/west", "clusters/[test]", "infra"} {
		all = append(all, &Cluster{Name: name})
	}
	for _, test := range []struct {
		asked, want string
		err         string
	}{
		{"", "clusters/east clusters/west clusters/[test] infra", ""},
		{"infra clusters/east", "clusters/east infra", ""},
		{"clusters/* clusters/west", "clusters/east clusters/west clusters/[test]", ""},
		{"*", "infra", ""},                         // a pattern ends at a slash, as that of a path
		{"clusters/[test]", "clusters/[test]", ""}, // a name that looks like a pattern
		{"north", "", "no such cluster in the input"},
		{"clusters/e* north", "", "no such cluster in the input"},
		{"[", "", "the pattern is invalid"},
	} {
		got, err := (&Options{Clusters: strings.Fields(test.asked)}).Choose(all)
		if test.err != "" {
			var usage *exit.UsageError
			if !errors.As(err, &usage) || usage.Option != "cluster" || err.Error() != test.err {
				t.Errorf("%s: %v, want %s", test.asked, err, test.err)
			}
			continue
		}
		if names := NamesOf(got); err != nil || !slices.Equal(names, strings.Fields(test.want)) {
			t.Errorf("%s: %v, %v, want %s", test.asked, names, err, test.want)
		}
	}
}
