package resolve

import (
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Level is the highest part of a version that may change.
type Level string

// The levels.
const (
	Patch Level = "patch"
	Minor Level = "minor"
	Major Level = "major"
)

// strict parses a version of three numbers, which may have a "v" in front.
func strict(text string) (*semver.Version, error) {
	return semver.StrictNewVersion(strings.TrimPrefix(text, "v"))
}

// Next returns the candidate that an exact version may be moved to: the newest that is higher, differs in no higher part
// than level, and was not removed. A pre-release only follows a pre-release. It returns false if there is no such
// candidate, or if current is not a version of three numbers.
func Next(cands []Candidate, current string, level Level) (Candidate, bool) {
	now, err := strict(current)
	if err != nil {
		return Candidate{}, false
	}
	i := highest(cands, func(c *Candidate) bool {
		v, err := strict(c.Version)
		return err == nil && live(c) && within(now, v, level)
	}, func(v *semver.Version) bool {
		return v.GreaterThan(now) && (v.Prerelease() == "" || now.Prerelease() != "")
	})
	if i < 0 {
		return Candidate{}, false
	}
	return cands[i], true
}

func within(now, v *semver.Version, level Level) bool {
	switch level {
	case Patch:
		return v.Major() == now.Major() && v.Minor() == now.Minor()
	case Minor:
		return v.Major() == now.Major()
	}
	return true
}
