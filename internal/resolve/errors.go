package resolve

import (
	"errors"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// ErrNoMatch is matched by every [*NoMatchError].
var ErrNoMatch = errors.New("no chart version matches")

// A NoMatchError reports that no published version matches, and the nearest versions.
type NoMatchError struct {
	Version     string // of the manifest
	Published   int    // number of candidates
	Newest      string // newest version that a range can choose, or ""
	Prerelease  string // newest pre-release that would match if pre-releases did
	Removed     string // newest removed version that would match
	Unreachable string // version without two dots that would match
	PrefixedTag string // newest tag with a "v" in front that would match

	text     string
	wider    string // a constraint that matches Prerelease, "" if there is no simple one
	filtered int    // number of tags, if the filter has left out all of them
}

func (e *NoMatchError) Error() string { return e.text }

// Finding returns the code of the error.
func (*NoMatchError) Finding() finding.Code { return finding.NoMatch }

// Is makes errors.Is(err, ErrNoMatch) true.
func (e *NoMatchError) Is(target error) bool { return target == ErrNoMatch }

// Hint returns advice about what the user may have meant, or "".
func (e *NoMatchError) Hint() string {
	switch {
	case e.filtered > 0:
		return fmt.Sprintf("spec.ref.semverFilter matches none of the %d tags", e.filtered)
	case e.PrefixedTag != "":
		return fmt.Sprintf("only the tag %q matches, but ranges ignore tags that start with \"v\": use exactly %q",
			e.PrefixedTag, e.PrefixedTag)
	case e.Prerelease != "" && e.wider != "":
		return fmt.Sprintf("only pre-releases match, the newest is %s: name it exactly or use the range %q",
			e.Prerelease, e.wider)
	case e.Prerelease != "":
		return fmt.Sprintf("only pre-releases match, the newest is %s: name it exactly", e.Prerelease)
	case e.Removed != "":
		return fmt.Sprintf("version %s matches but is marked as removed: only its exact version selects it", e.Removed)
	case e.Unreachable != "":
		return fmt.Sprintf("version %q is published but has fewer than three parts: use exactly %q",
			e.Unreachable, e.Unreachable)
	case e.Newest != "":
		return "newest published version is " + e.Newest
	}
	return ""
}

func asNoMatch(err error) (*NoMatchError, bool) {
	var noMatch *NoMatchError
	ok := errors.As(err, &noMatch)
	return noMatch, ok
}

// reword sets the text of a NoMatchError, except if there were no candidates. The error is new from Choose and not
// shared yet.
func reword(err error, text string) error {
	if noMatch, ok := asNoMatch(err); ok && noMatch.Published > 0 {
		noMatch.text = text
	}
	return err
}

// explain returns an error with the versions nearest to a constraint that no version satisfies.
func explain(cands []Candidate, version string, constraint *semver.Constraints) error {
	e := &NoMatchError{
		Version:   version,
		Published: len(cands),
		text:      fmt.Sprintf("no version matching '%s' found", version),
	}
	e.Newest = newest(cands)
	wider := *constraint
	wider.IncludePrerelease = true
	e.Prerelease = versionAt(cands, highest(cands, live, wider.Check))
	if e.Prerelease != "" {
		e.wider = widen(version, e.Prerelease)
	}
	if e.Prerelease == "" {
		e.Prerelease, e.wider = before(cands, constraint)
	}
	e.Removed = versionAt(cands, highest(cands, removed, constraint.Check))
	e.Unreachable = unreachable(cands, constraint)
	return e
}

// before returns the newest pre-release of a version that would match, and a range that matches it: 1.0.0-beta.1 precedes
// all versions of 1.x.
func before(cands []Candidate, constraint *semver.Constraints) (version, wider string) {
	i := highest(cands, live, func(v *semver.Version) bool {
		release, err := v.SetPrerelease("")
		return err == nil && v.Prerelease() != "" && constraint.Check(&release)
	})
	if i < 0 {
		return "", ""
	}
	v, err := parseVersion(cands[i].Version)
	if err != nil {
		return cands[i].Version, ""
	}
	return cands[i].Version, fmt.Sprintf(">=%d.%d.%d-0", v.Major(), v.Minor(), v.Patch())
}

func removed(c *Candidate) bool { return c.Removed }

func versionAt(cands []Candidate, i int) string {
	if i < 0 {
		return ""
	}
	return cands[i].Version
}

// newest returns the newest release, or the newest pre-release if there are no releases.
func newest(cands []Candidate) string {
	release := func(v *semver.Version) bool { return v.Prerelease() == "" }
	if i := highest(cands, live, release); i >= 0 {
		return cands[i].Version
	}
	return versionAt(cands, highest(cands, live, func(*semver.Version) bool { return true }))
}

// widen returns the constraint with the smallest change that lets prerelease match, "" if there is no simple change.
func widen(version, prerelease string) string {
	v, err := parseVersion(prerelease)
	if err != nil {
		return ""
	}
	wider := version + "-0"
	if version == "" || version == "*" {
		wider = ">=0.0.0-0"
	}
	if constraint, err := semver.NewConstraint(wider); err != nil || !constraint.Check(v) {
		return ""
	}
	return wider
}

// unreachable returns the highest version without two dots that satisfies the constraint.
func unreachable(cands []Candidate, constraint *semver.Constraints) string {
	found, foundVersion := "", (*semver.Version)(nil)
	for i := range cands {
		s := cands[i].Version
		if cands[i].Removed || strings.Count(s, ".") >= 2 {
			continue
		}
		v, err := semver.NewVersion(s)
		if err != nil || !constraint.Check(v) {
			continue
		}
		if foundVersion == nil || v.GreaterThan(foundVersion) {
			found, foundVersion = s, v
		}
	}
	return found
}

// prefixedTag returns the tag with a "v" in front that version would choose if tags had no "v".
func prefixedTag(tags []string, version string) string {
	var bare []string
	for _, tag := range tags {
		if rest, found := strings.CutPrefix(tag, "v"); found {
			bare = append(bare, rest)
		}
	}
	c, err := Choose(FromTags(bare), version)
	if err != nil {
		return ""
	}
	return "v" + c.Tag
}
