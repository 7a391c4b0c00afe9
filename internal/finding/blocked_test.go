package finding

import (
	"fmt"
	"strings"
	"testing"
)

// failure returns an error of an object, which another object blocks if by is not empty.
func failure(kind, name, by string) Finding {
	f := Finding{Code: Unreachable, Severity: Error, Kind: kind, Namespace: "ns", Name: name, Pos: Pos{name + ".yaml", 1, 1}}
	if by != "" {
		by, name, _ := strings.Cut(by, "/")
		f.BlockedBy = Object{Kind: by, Namespace: "ns", Name: name}
	}
	return f
}

func made(f Finding, kind, name string) Finding {
	f.MadeOf = Object{Kind: kind, Namespace: "ns", Name: name}
	return f
}

// member returns a finding about a cycle.
func member(name, of string) Finding {
	f := failure("R", name, "")
	f.Code, f.Message = DependencyCycle, of
	return f
}

func TestFold(t *testing.T) {
	repository := failure("HelmRepository", "r", "")
	chart := made(failure("HelmChart", "ns-a", "HelmRepository/r"), "HelmRelease", "a")
	release := failure("HelmRelease", "a", "HelmChart/ns-a")
	warning := failure("HelmRepository", "r", "")
	warning.Severity = Warning
	for name, test := range map[string]struct {
		found []Finding
		want  string
	}{
		"nothing":                   {nil, ""},
		"a cause alone":             {[]Finding{repository}, "HelmRepository ns/r []"},
		"effects before the cause":  {[]Finding{release, chart, repository}, "HelmRepository ns/r [HelmRelease ns/a]"},
		"a chart of its own":        {[]Finding{failure("HelmChart", "ns-a", ""), release}, "HelmChart ns/ns-a [HelmRelease ns/a]"},
		"no cause":                  {[]Finding{chart, release}, "HelmChart ns/ns-a [HelmRelease ns/a]"},
		"a warning is no cause":     {[]Finding{warning, chart}, "HelmRepository ns/r [] HelmChart ns/ns-a []"},
		"a circle":                  {[]Finding{failure("A", "a", "B/b"), failure("B", "b", "A/a")}, "A ns/a [] B ns/b []"},
		"a cycle":                   {[]Finding{member("b", "a, b"), chart, member("a", "a, b"), member("a", "a, c"), failure("R", "x", "R/b")}, "HelmChart ns/ns-a [] R ns/a [R ns/b R ns/x] R ns/a []"},
		"a part of a cycle":         {[]Finding{member("c", "a, b, c"), member("b", "a, b, c")}, "R ns/b [R ns/c]"},
		"one that is in two cycles": {[]Finding{member("a", "a, b"), member("b", "a, b"), member("b", "b, c"), member("c", "b, c")}, "R ns/a [R ns/b] R ns/b [R ns/c]"},
		"a mistake and an effect":   {[]Finding{repository, failure("HelmChart", "c", ""), failure("HelmChart", "c", "HelmRepository/r")}, "HelmRepository ns/r [HelmChart ns/c] HelmChart ns/c []"},
		"two mistakes of one cause": {[]Finding{repository, repository, chart}, "HelmRepository ns/r [HelmRelease ns/a] HelmRepository ns/r []"},
	} {
		var got []string
		for _, f := range Fold(test.found) {
			got = append(got, fmt.Sprint(f.Object(), " ", f.Blocks))
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%s: %s, want %s", name, text, test.want)
		}
	}
}

// TestUnite: a finding of two clusters names the places and the objects of both.
func TestUnite(t *testing.T) {
	one, two := failure("HelmRepository", "r", ""), failure("HelmRepository", "r", "")
	one.Blocks = []Object{{Kind: "HelmRelease", Name: "a"}}
	two.Blocks = []Object{{Kind: "HelmRelease", Name: "a"}, {Kind: "HelmRelease", Name: "b"}}
	two.Pos.File = "two.yaml"
	united := one.Unite(two).Unite(two)
	if fmt.Sprint(united.Blocks, united.Related) != "[HelmRelease a HelmRelease b] [two.yaml:1:1]" {
		t.Error(united.Blocks, united.Related)
	}
	if len(one.Blocks) != 1 || one.Related != nil {
		t.Error("the first finding was changed")
	}
}
