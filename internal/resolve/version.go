package resolve

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/Masterminds/semver/v3"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// parseVersion parses a version as source-controller does: there must be two dots somewhere, otherwise it is
// lenient ("v1.2.3" and "2025.02.03" are versions, "1.2" is not).
func parseVersion(s string) (*semver.Version, error) {
	if strings.Count(s, ".") < 2 {
		return nil, semver.ErrInvalidSemVer
	}
	// The strict parser uses no regular expression and parses nearly all published versions.
	if v, err := semver.StrictNewVersion(strings.TrimPrefix(s, "v")); err == nil {
		return v, nil
	}
	return semver.NewVersion(s)
}

// parseConstraint returns a [finding.MalformedVersion] for anything that is not a constraint of at most 512 bytes with at
// most 32 alternatives; these are semver's own limits.
func parseConstraint(version string) (*semver.Constraints, error) {
	if version == "" {
		version = "*"
	}
	constraint, err := semver.NewConstraint(version)
	if err != nil {
		return nil, improper(version, err)
	}
	return constraint, nil
}

// improper returns an error for a version that is neither published nor a constraint.
func improper(version string, err error) error {
	p := &finding.Problem{
		Code: finding.MalformedVersion, Text: fmt.Sprintf("improper constraint: %q", version), Err: err,
		Advice: `use a version such as "1.2.3" or a range such as "1.2.x", "^1.2.0" or ">=1.2.0 <2.0.0"`,
	}
	if errors.Is(err, semver.ErrConstraintTooLong) || errors.Is(err, semver.ErrTooManyConstraintGroups) {
		p.Text = "improper constraint: " + err.Error()
	}
	if strings.EqualFold(version, "latest") {
		p.Advice = `for the latest version leave the version out, or use "*"`
	}
	return p
}

// ValidateVersion returns a [finding.MalformedVersion] for a version that only a candidate of exactly that name could satisfy,
// such as "latest" or "nightly": it finds typing mistakes without candidates.
func ValidateVersion(version string) error {
	_, err := parseConstraint(version)
	return err
}

// IsRange reports whether a text is a range of versions, and not a version: 6.x and ^6 are ranges, 6.1.0 and latest are not.
func IsRange(text string) bool {
	_, err := semver.NewVersion(text)
	return err != nil && ValidateVersion(text) == nil
}

// SetMetadata returns version with meta as its build metadata. It replaces existing metadata, and normalises the version:
// "v1.2" becomes "1.2.0+meta". With an empty meta, it returns the version unchanged.
func SetMetadata(version, meta string) (string, error) {
	if meta == "" {
		return version, nil
	}
	v, err := semver.NewVersion(version)
	if err != nil {
		return "", fmt.Errorf("failed to parse version from chart metadata as SemVer: %w", err)
	}
	with, err := v.SetMetadata(meta)
	if err != nil {
		return "", fmt.Errorf("failed to set SemVer metadata on chart version: %w", err)
	}
	return with.String(), nil
}

// nameForm is source-controller's expression. It forbids upper case and "_", although HTTP repositories may have such
// charts (see docs/differences.md).
var nameForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([-a-z0-9]+/?\.?)+$`) })

// ValidateName checks a chart name that is looked up in a repository, before any request for it.
func ValidateName(name string) error {
	if name == "" {
		return &finding.Problem{Code: finding.InvalidChartName, Text: "no name set for remote chart reference"}
	}
	if !nameForm().MatchString(name) {
		return &finding.Problem{Code: finding.InvalidChartName, Text: fmt.Sprintf("invalid chart name '%s': a valid name must be "+
			"lower case letters and numbers and MAY be separated with dashes (-), slashes (/) or periods (.)", name)}
	}
	return nil
}
