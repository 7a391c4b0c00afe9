package chart

import (
	"path"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// MatchName reports whether a chart's own name is the one it was asked for by. In an OCI registry a chart may be asked
// for by a path, of which the last element is its name.
func MatchName(got, want string) bool {
	return path.Base(got) == path.Base(want)
}

// MatchVersion reports whether two spellings mean the same version, build metadata included. A leading v and the
// underscore that stands for a plus in OCI tags make no difference. What is no semantic version must be equal.
func MatchVersion(got, want string) bool {
	if got == want {
		return true
	}
	g, err := parseTag(got)
	if err != nil {
		return false
	}
	w, err := parseTag(want)
	if err != nil {
		return false
	}
	return g.Equal(w) && g.Metadata() == w.Metadata()
}

func parseTag(s string) (*semver.Version, error) {
	return semver.NewVersion(strings.ReplaceAll(s, "_", "+"))
}
