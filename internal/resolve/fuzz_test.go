package resolve_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

// FuzzChoose checks the rules of Choose: the result is in the list, equals the version or satisfies the
// constraint, no better candidate is in the list, and the order of the list does not matter.
func FuzzChoose(f *testing.F) {
	f.Add("1.0.0\n1.1.0-rc.1\n0.1.5+a\n0.1.5+b", "*")
	f.Add("v1.2.3\n1.2\n2025.02.03\n-1.2.3", ">=1.0.0-0")
	f.Add("!1.0.0\n1.0.0\n+1.0.0", "1.0.0")
	f.Add("1.0.0+x\n1.0.0+y\nv1.0.0", "^1 || 0.x")
	f.Add("latest", "latest")
	f.Add("", "")
	f.Add("1+q.0.0\n\n", "")
	f.Fuzz(func(t *testing.T, list, version string) {
		cands := fuzzCandidates(list)
		c, err := resolve.Choose(cands, version)
		reversed := slices.Clone(cands)
		slices.Reverse(reversed)
		again, errAgain := resolve.Choose(reversed, version)
		if text(err) != text(errAgain) {
			t.Fatalf("order matters: %v, then %v", err, errAgain)
		}
		if err != nil {
			checkRefusal(t, cands, version, err)
			return
		}
		if !slices.ContainsFunc(cands, func(o resolve.Candidate) bool { return same(o, c) }) {
			t.Fatalf("%+v is not in the list", c)
		}
		if !same(c, again) && !tied(c, again) {
			t.Fatalf("order matters: %+v, then %+v", c, again)
		}
		if c.Version != version {
			checkHighest(t, cands, version, c)
		}
	})
}

// fuzzCandidates reads a candidate per line; "!" in front removes it, each leading space makes it a minute older.
func fuzzCandidates(list string) []resolve.Candidate {
	var cands []resolve.Candidate
	for line := range strings.Lines(list) {
		line = strings.TrimSuffix(line, "\n")
		version := strings.TrimLeft(line, " ")
		c := resolve.Candidate{Created: day.Add(-time.Duration(len(line)-len(version)) * time.Minute)}
		c.Version, c.Removed = strings.CutPrefix(version, "!")
		cands = append(cands, c)
	}
	return cands
}

func same(a, b resolve.Candidate) bool {
	return a.Version == b.Version && a.Created.Equal(b.Created) && a.Removed == b.Removed
}

// tied reports whether only the place in the list decides between two candidates.
func tied(a, b resolve.Candidate) bool {
	return sameVersion(a.Version, b.Version) && a.Created.Equal(b.Created)
}

func sameVersion(a, b string) bool {
	if a == b {
		return true
	}
	va, errA := semver.NewVersion(strings.ReplaceAll(a, "_", "+"))
	vb, errB := semver.NewVersion(strings.ReplaceAll(b, "_", "+"))
	return errA == nil && errB == nil && va.Equal(vb) && va.Metadata() == vb.Metadata()
}

func checkHighest(t *testing.T, cands []resolve.Candidate, version string, c resolve.Candidate) {
	constraint := mustConstraint(t, version)
	chosen, err := semver.NewVersion(c.Version)
	if err != nil || !constraint.Check(chosen) || c.Removed || strings.Count(c.Version, ".") < 2 {
		t.Fatalf("%+v does not satisfy %q", c, version)
	}
	for _, o := range cands {
		if o.Version == version && version != "" {
			t.Fatalf("chose %q although %q is in the list", c.Version, version)
		}
		if v := eligible(o, constraint); v != nil && v.GreaterThan(chosen) {
			t.Fatalf("chose %q although %q is higher", c.Version, o.Version)
		}
	}
}

func checkRefusal(t *testing.T, cands []resolve.Candidate, version string, err error) {
	var improper *finding.Problem
	if errors.As(err, &improper) {
		if improper.Hint() == "" {
			t.Fatal("no hint")
		}
		return
	}
	var noMatch *resolve.NoMatchError
	if !errors.As(err, &noMatch) || noMatch.Published != len(cands) {
		t.Fatalf("unexpected error %#v", err)
	}
	_ = noMatch.Hint()
	if len(cands) == 0 {
		return
	}
	constraint := mustConstraint(t, version)
	for _, o := range cands {
		if o.Version == version && version != "" || eligible(o, constraint) != nil {
			t.Fatalf("%v, although %+v matches %q", err, o, version)
		}
	}
}

func mustConstraint(t *testing.T, version string) *semver.Constraints {
	if version == "" {
		version = "*"
	}
	constraint, err := semver.NewConstraint(version)
	if err != nil {
		t.Fatalf("%q was accepted: %v", version, err)
	}
	return constraint
}

// eligible reads the version as slowly and plainly as possible.
func eligible(c resolve.Candidate, constraint *semver.Constraints) *semver.Version {
	v, err := semver.NewVersion(c.Version)
	if err != nil || c.Removed || strings.Count(c.Version, ".") < 2 || !constraint.Check(v) {
		return nil
	}
	return v
}
