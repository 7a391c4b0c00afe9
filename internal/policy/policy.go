// Package policy chooses a tag of a list by an ImagePolicy of Flux, and parses the markers by which fields of
// manifests follow policies. It does no I/O and does not know where the tags come from. It behaves like
// image-reflector-controller and image-automation-controller.
package policy

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/helmsrc/helmsrc/internal/bound"
)

// Policy defines the order of tags. If several of the three orders are set, the first of them applies, as in the
// controller.
type Policy struct {
	// Semver is a range of versions.
	Semver *string
	// Alphabetical and Numerical are "asc" or "desc"; empty means asc.
	Alphabetical, Numerical *string
	// Pattern is a regular expression that tags must match, and Extract is a template for the part that is compared. An
	// empty pattern matches every tag, an empty template gives the whole tag.
	Pattern, Extract string
}

// Choices returns the number of orders that are set. More than one is most likely a mistake.
func (p Policy) Choices() int {
	n := 0
	for _, given := range []bool{p.Semver != nil, p.Alphabetical != nil, p.Numerical != nil} {
		if given {
			n++
		}
	}
	return n
}

// Latest returns the latest of the tags, which must be in the order of [Listed]: the order decides between equal tags. The
// messages are the controller's.
func (p Policy) Latest(tags []string) (string, error) {
	choose, err := p.chooser()
	if err != nil {
		return "", err
	}
	if len(tags) == 0 {
		return "", errors.New("no tags in database")
	}
	candidates, err := p.candidates(tags)
	if err != nil {
		return "", err
	}
	if len(candidates) == 0 {
		return "", errors.New("version list argument cannot be empty")
	}
	return choose(candidates)
}

// candidate is a tag, and the text by which it is compared.
type candidate struct{ tag, text string }

// candidates filters the tags. Of several tags with the same extract, the last remains, at the position of the first.
func (p Policy) candidates(tags []string) ([]candidate, error) {
	var found []candidate
	if p.Pattern == "" {
		for _, tag := range tags {
			found = append(found, candidate{tag, tag})
		}
		return found, nil
	}
	if err := bound.Match(tags, p.Pattern); err != nil {
		return nil, fmt.Errorf("failed to filter tags: %w", err)
	}
	pattern, err := regexp.Compile(p.Pattern)
	if err != nil {
		return nil, fmt.Errorf("failed to filter tags: invalid regular expression pattern '%s': %w", p.Pattern, err)
	}
	at := map[string]int{}
	for _, tag := range tags {
		match := pattern.FindStringSubmatchIndex(tag)
		if match == nil {
			continue
		}
		text := tag
		if p.Extract != "" {
			text = string(pattern.ExpandString(nil, p.Extract, tag, match))
		}
		if i, seen := at[text]; seen {
			found[i].tag = tag
			continue
		}
		at[text] = len(found)
		found = append(found, candidate{tag, text})
	}
	return found, nil
}

func (p Policy) chooser() (func([]candidate) (string, error), error) {
	switch {
	case p.Semver != nil:
		constraint, err := semver.NewConstraint(*p.Semver)
		if err != nil {
			return nil, fmt.Errorf("invalid policy: %w", err)
		}
		return func(c []candidate) (string, error) { return latestVersion(c, constraint) }, nil
	case p.Alphabetical != nil:
		return ordered(*p.Alphabetical, alphabetical)
	case p.Numerical != nil:
		return ordered(*p.Numerical, numerical)
	}
	return nil, errors.New("invalid policy: given ImagePolicyChoice object is invalid")
}

func ordered(order string, latest func(c []candidate, descending bool) (string, error)) (func([]candidate) (string, error), error) {
	switch order {
	case "", "asc", "desc":
		return func(c []candidate) (string, error) { return latest(c, order == "desc") }, nil
	}
	return nil, fmt.Errorf("invalid policy: invalid order argument provided: '%s', must be one of: asc, desc", order)
}

// latestVersion returns the tag with the highest version that fits. Of equal versions, the first wins.
func latestVersion(candidates []candidate, constraint *semver.Constraints) (string, error) {
	tag := ""
	var latest *semver.Version
	for _, c := range candidates {
		v, ok := Version(c.text)
		if ok && constraint.Check(v) && (latest == nil || latest.LessThan(v)) {
			tag, latest = c.tag, v
		}
	}
	if latest == nil {
		return "", errors.New("unable to determine latest version from provided list")
	}
	return tag, nil
}

// Version parses a tag as the controllers do: it needs three parts at dots, but each part may have leading zeros, and the
// version may begin with v.
func Version(tag string) (*semver.Version, bool) {
	if strings.Count(tag, ".") < 2 {
		return nil, false
	}
	v, err := semver.NewVersion(tag)
	return v, err == nil
}

// alphabetical compares bytes.
func alphabetical(candidates []candidate, descending bool) (string, error) {
	compare := func(a, b candidate) int { return strings.Compare(a.text, b.text) }
	if descending {
		return slices.MinFunc(candidates, compare).tag, nil
	}
	return slices.MaxFunc(candidates, compare).tag, nil
}

// numerical compares numbers as the controller does, as 64-bit floating point. Of equal numbers, the last wins.
func numerical(candidates []candidate, descending bool) (string, error) {
	tag := ""
	var latest float64
	for i, c := range candidates {
		n, err := strconv.ParseFloat(c.text, 64)
		if err != nil {
			return "", fmt.Errorf("failed to parse invalid numeric value '%s'", c.text)
		}
		order := cmp.Compare(n, latest)
		if descending {
			order = -order
		}
		if i == 0 || order >= 0 {
			tag, latest = c.tag, n
		}
	}
	return tag, nil
}

// signatureTags matches the tags that are left out by default.
const signatureTags = `^.*\.sig$`

// Listed returns the tags of a registry as an ImageRepository lists them: without tags that match an exclusion, in
// descending order of bytes. Without exclusions, tags of signatures are excluded. Invalid tags are left out: they
// would break the files that they are written to.
func Listed(tags, exclusions []string) ([]string, error) {
	if len(exclusions) == 0 {
		exclusions = []string{signatureTags}
	}
	if err := bound.Match(tags, exclusions...); err != nil {
		return nil, fmt.Errorf("scan failed: %w", err)
	}
	patterns := make([]*regexp.Regexp, len(exclusions))
	for i, text := range exclusions {
		var err error
		if patterns[i], err = regexp.Compile(text); err != nil {
			return nil, fmt.Errorf("scan failed: failed to compile regex %s: %w", text, err)
		}
	}
	listed := make([]string, 0, len(tags))
	for _, tag := range tags {
		excluded := slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(tag) })
		if !excluded && IsTag(tag) {
			listed = append(listed, tag)
		}
	}
	slices.SortFunc(listed, func(a, b string) int { return strings.Compare(b, a) })
	return slices.Compact(listed), nil
}

// maxTag is the limit of the OCI distribution specification for a tag, in bytes.
const maxTag = 128

// IsTag reports whether a tag is valid by the OCI distribution specification.
func IsTag(tag string) bool {
	if tag == "" || len(tag) > maxTag || tag[0] == '.' || tag[0] == '-' {
		return false
	}
	return !strings.ContainsFunc(tag, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && r != '_' && r != '.' && r != '-'
	})
}
