// Package resolve chooses which published version of a chart satisfies a constraint.
// It does no I/O and does not know where candidates come from.
package resolve

import (
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
)

// UnquotedDigest is the prefix of the digest of a candidate whose index has a number instead of a string.
const UnquotedDigest = "unquoted number "

// A Candidate is one published version of a chart.
type Candidate struct {
	Name    string
	Version string
	// AppVersion is the version of the application, for display. Tags of a registry do not have it.
	AppVersion string
	Created    time.Time // zero when unknown, as for tags of a registry
	Digest     string    // as published, not yet validated
	URLs       []string
	Tag        string // the registry's tag, "" for an entry of an index
	Removed    bool   // withdrawn by its publisher: never chosen by a range, still found by its exact version
	// Deprecated charts are chosen like any other.
	Deprecated bool
}

// Choose returns the candidate that matches version, which may be a version, a semver range, or "" or "*" for the
// latest. An error is a [*NoMatchError] or a [finding.MalformedVersion].
//
// An exact string match wins before any constraint is tried, so that "1.2.3+build7" can be named although
// semver ignores build metadata, and so that versions that are not semver can be named at all.
// source-controller does the same. It is also the only way to a removed version or a pre-release outside the range.
//
// A range chooses the highest precedence. Of several candidates with the same precedence it prefers the one created
// last, then the lexically greatest build metadata, then the first in the list.
func Choose(cands []Candidate, version string) (Candidate, error) {
	if len(cands) == 0 {
		return Candidate{}, &NoMatchError{Version: version, text: "no chart version found"}
	}
	if i := exact(cands, version); i >= 0 {
		return cands[i], nil
	}
	constraint, err := parseConstraint(version)
	if err != nil {
		return Candidate{}, err
	}
	if i := highest(cands, live, constraint.Check); i >= 0 {
		return cands[i], nil
	}
	return Candidate{}, explain(cands, version, constraint)
}

// ChooseFromIndex is Choose among the entries that an index lists for chart, with source-controller's error text.
func ChooseFromIndex(chart string, cands []Candidate, version string) (Candidate, error) {
	c, err := Choose(cands, version)
	return c, reword(err, "no '"+chart+"' chart with version matching '"+version+"' found")
}

// ChooseFromTags is Choose among the tags of a registry, with source-controller's error text. Its error also reports a tag
// that [FromTags] leaves out if the user may have meant it.
func ChooseFromTags(tags []string, version string) (Candidate, error) {
	c, err := Choose(FromTags(tags), version)
	if noMatch, ok := asNoMatch(err); ok {
		noMatch.PrefixedTag = prefixedTag(tags, version)
	}
	return c, reword(err, "could not locate a version matching provided version string "+version)
}

// FromTags returns a candidate for every tag that is a strict semantic version, in the order of the tags. Helm pushes
// a chart's "+" as "_", because a tag cannot hold it; here it is "+" again, and Tag keeps the original. Tags such as
// "v1.2.3", "1.2" and "latest" are left out, as Helm does: only an exact version matches them.
func FromTags(tags []string) []Candidate {
	cands := make([]Candidate, 0, len(tags))
	for _, tag := range tags {
		version := strings.ReplaceAll(tag, "_", "+")
		if _, err := semver.StrictNewVersion(version); err == nil {
			cands = append(cands, Candidate{Version: version, Tag: tag})
		}
	}
	return cands
}

// IsExact reports whether version names one version rather than a range, so that a registry can be queried for it without
// listing tags. Only the registry knows whether it exists.
func IsExact(version string) bool {
	_, err := parseVersion(version)
	return err == nil
}

// exact returns the index of the candidate whose version is equal to a string, or -1. Of several, it prefers a live
// candidate to a removed one, then the one created last, then the first.
func exact(cands []Candidate, version string) int {
	best := -1
	if version == "" {
		return best
	}
	for i := range cands {
		if cands[i].Version != version {
			continue
		}
		if best < 0 || betterEqual(&cands[i], &cands[best]) {
			best = i
		}
	}
	return best
}

func betterEqual(c, best *Candidate) bool {
	if c.Removed != best.Removed {
		return best.Removed
	}
	return c.Created.After(best.Created)
}

func live(c *Candidate) bool { return !c.Removed }

// highest returns the index of the best candidate that is eligible and whose version is wanted, or -1. It skips candidates
// whose version has fewer than two dots or is invalid, as source-controller does.
func highest(cands []Candidate, eligible func(*Candidate) bool, wanted func(*semver.Version) bool) int {
	best, bestVersion := -1, (*semver.Version)(nil)
	for i := range cands {
		c := &cands[i]
		if !eligible(c) {
			continue
		}
		v, err := parseVersion(c.Version)
		if err != nil {
			continue
		}
		// Compare with the best first: that is cheaper than the constraint, and mostly false.
		if best >= 0 && !beats(c, v, &cands[best], bestVersion) {
			continue
		}
		if wanted(v) {
			best, bestVersion = i, v
		}
	}
	return best
}

// beats reports whether c, of version v, is preferred to best, which precedes it in the list.
func beats(c *Candidate, v *semver.Version, best *Candidate, bestVersion *semver.Version) bool {
	if order := v.Compare(bestVersion); order != 0 {
		return order > 0
	}
	if !c.Created.Equal(best.Created) {
		return c.Created.After(best.Created)
	}
	return v.Metadata() > bestVersion.Metadata()
}
