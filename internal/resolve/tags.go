package resolve

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/bound"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// A TagRange is spec.ref.semver of an OCIRepository.
type TagRange struct {
	text   string
	filter *regexp.Regexp // nil keeps every tag
	helm   bool
}

// NewTagRange parses spec.ref.semver and spec.ref.semverFilter. If helm is set, the tags are those of charts, in which
// "_" means "+"; without it, tags with "_" are not versions. An error has source-controller's text.
func NewTagRange(text, filter string, helm bool) (*TagRange, error) {
	r := &TagRange{text: text, helm: helm}
	if filter != "" {
		var err error
		if r.filter, err = regexp.Compile(filter); err != nil {
			return nil, err
		}
	}
	if _, err := parseConstraint(text); err != nil {
		return nil, &finding.Problem{Text: fmt.Sprintf("semver '%s' parse error: improper constraint: %s", text, text), Err: err}
	}
	return r, nil
}

// Choose returns the tag with the highest version in the range. Unlike among the tags of a HelmRepository, a version may
// have a "v" in front. Between tags of the same precedence, it decides as for versions of a chart. An error is a
// [*NoMatchError].
func (r *TagRange) Choose(tags []string) (string, error) {
	kept := tags
	if r.filter != nil {
		if err := bound.Match(tags, r.filter.String()); err != nil {
			return "", err
		}
		kept = slices.DeleteFunc(slices.Clone(tags), func(tag string) bool { return !r.filter.MatchString(tag) })
	}
	constraint, err := parseConstraint(r.text)
	if err != nil {
		return "", err
	}
	cands := r.candidates(kept)
	if i := highest(cands, live, constraint.Check); i >= 0 {
		return cands[i].Tag, nil
	}
	noMatch := &NoMatchError{Version: r.text}
	if len(cands) > 0 {
		noMatch, _ = asNoMatch(explain(cands, r.text, constraint))
	}
	noMatch.text = "no match found for semver: " + r.text
	if len(kept) == 0 && len(tags) > 0 {
		noMatch.filtered = len(tags)
	}
	return "", noMatch
}

func (r *TagRange) candidates(tags []string) []Candidate {
	cands := make([]Candidate, 0, len(tags))
	for _, tag := range tags {
		version := tag
		if r.helm {
			version = strings.ReplaceAll(tag, "_", "+")
		}
		cands = append(cands, Candidate{Version: version, Tag: tag})
	}
	return cands
}

// OtherTag returns a tag without its leading "v", or with one if it has none.
func OtherTag(tag string) string {
	if other, prefixed := strings.CutPrefix(tag, "v"); prefixed {
		return other
	}
	return "v" + tag
}
