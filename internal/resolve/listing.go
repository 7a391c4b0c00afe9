package resolve

import (
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// NewestFirst sorts candidates by the precedence of their versions, the newest first. Of the same precedence, the candidate
// that [Choose] prefers comes first. Invalid versions come last, in descending order of bytes.
func NewestFirst(cands []Candidate) []Candidate {
	type entry struct {
		c Candidate
		v *semver.Version
	}
	entries := make([]entry, len(cands))
	for i := range cands {
		v, _ := parseVersion(cands[i].Version)
		entries[i] = entry{cands[i], v}
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		switch {
		case a.v == nil && b.v == nil:
			return strings.Compare(b.c.Version, a.c.Version)
		case a.v == nil:
			return 1
		case b.v == nil:
			return -1
		case beats(&a.c, a.v, &b.c, b.v):
			return -1
		case beats(&b.c, b.v, &a.c, a.v):
			return 1
		}
		return 0
	})
	sorted := make([]Candidate, len(cands))
	for i := range entries {
		sorted[i] = entries[i].c
	}
	return sorted
}

// Newest returns the candidate with the highest version that was not removed. It returns a pre-release only if prereleases
// is true, or if there are no releases.
func Newest(cands []Candidate, prereleases bool) (Candidate, bool) {
	all := func(*semver.Version) bool { return true }
	i := -1
	if !prereleases {
		i = highest(cands, live, func(v *semver.Version) bool { return v.Prerelease() == "" })
	}
	if i < 0 {
		i = highest(cands, live, all)
	}
	if i < 0 {
		return Candidate{}, false
	}
	return cands[i], true
}

// IsPrerelease reports whether a version is a pre-release.
func IsPrerelease(version string) bool {
	v, err := parseVersion(version)
	return err == nil && v.Prerelease() != ""
}

// Newer reports whether version has a higher precedence than other. An invalid version is older than a valid one.
func Newer(version, other string) bool {
	v, err := parseVersion(version)
	if err != nil {
		return false
	}
	o, err := parseVersion(other)
	return err != nil || v.GreaterThan(o)
}

// Takes returns a test whether [Choose] could choose a candidate for version. The error is a [finding.MalformedVersion].
func Takes(version string) (func(Candidate) bool, error) {
	constraint, err := parseConstraint(version)
	if err != nil {
		return nil, err
	}
	return func(c Candidate) bool {
		if c.Version == version && version != "" {
			return true
		}
		v, err := parseVersion(c.Version)
		return err == nil && !c.Removed && constraint.Check(v)
	}, nil
}

// TagCandidates returns a candidate for every tag that is a version with three parts, which may have a "v" in front. If helm
// is set, the tags are tags of charts.
func TagCandidates(tags []string, helm bool) []Candidate {
	all := (&TagRange{helm: helm}).candidates(tags)
	return slices.DeleteFunc(all, func(c Candidate) bool {
		_, err := parseVersion(c.Version)
		return err != nil
	})
}

// Takes reports whether Choose could choose the tag of a candidate.
func (r *TagRange) Takes(c Candidate) bool {
	takes, err := Takes(r.text)
	return err == nil && takes(c) && (r.filter == nil || r.filter.MatchString(c.Tag))
}
