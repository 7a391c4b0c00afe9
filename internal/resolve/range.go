package resolve

import (
	"math"
	"regexp"
	"strconv"
	"sync"

	"github.com/Masterminds/semver/v3"
)

// literalForm matches a version in a constraint, which may be partial.
var literalForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z.-]+))?`)
})

// maxLiteral is the largest number that has a successor.
const maxLiteral = math.MaxInt64 - 2

// Satisfiable reports whether any version could match a constraint. It returns true for an invalid constraint.
//
// The versions that a constraint matches form intervals that begin and end at, or at the next minor or major version
// of, the versions that it names. So it is enough to try these and their neighbours.
func Satisfiable(version string) bool {
	constraint, err := parseConstraint(version)
	if err != nil {
		return true
	}
	wide := *constraint
	wide.IncludePrerelease = true
	tried := semver.New(0, 0, 0, "", "")
	if wide.Check(tried) {
		return true
	}
	for _, m := range literalForm().FindAllStringSubmatch(version, -1) {
		major, minor, patch := part(m[1]), part(m[2]), part(m[3])
		if max(major, minor, patch) > maxLiteral {
			return true // its successor is not known
		}
		for _, v := range neighbours(major, minor, patch, m[4]) {
			if wide.Check(v) {
				return true
			}
		}
	}
	return false
}

func part(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil && text != "" {
		return math.MaxUint64
	}
	return n
}

// neighbours returns a version, those around it, and the first of the next minor and major versions. Two consecutive
// versions are enough to skip an excluded version.
func neighbours(major, minor, patch uint64, pre string) []*semver.Version {
	var all []*semver.Version
	add := func(major, minor, patch uint64) {
		for _, pre := range []string{"", "0", pre, pre + ".0"} {
			if pre != ".0" {
				all = append(all, semver.New(major, minor, patch, pre, ""))
			}
		}
	}
	for step := range uint64(3) {
		add(major, minor, patch+step)
		add(major, minor+step, 0)
		add(major+step, 0, 0)
		if patch >= step {
			add(major, minor, patch-step)
		}
	}
	if minor > 0 {
		add(major, minor-1, maxLiteral)
	}
	if major > 0 {
		add(major-1, maxLiteral, maxLiteral)
	}
	return all
}

// Unbounded reports whether a constraint matches all future major versions.
func Unbounded(version string) bool {
	constraint, err := parseConstraint(version)
	return err == nil && constraint.Check(semver.New(maxLiteral, 0, 0, "", ""))
}
