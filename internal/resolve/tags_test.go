package resolve

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/bound"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// case R27, case R28, case R29
func TestTagRange(t *testing.T) {
	podinfo := []string{"6.1.4", "6.1.5", "6.1.6-rc.1", "6.1.6", "latest", "6.1", "sha256-abc.sig"}
	refs := []string{"6.2.1", "6.2.1_ref.1234567", "6.2.0"}
	for _, tt := range []struct {
		name, text, filter string
		helm               bool
		tags               []string
		want, err, hint    string
	}{
		{"highest", "~6.1.x", "", false, podinfo, "6.1.6", "", ""},
		{"pre-release in the range", ">= 6.1.x-0", "", false, podinfo, "6.1.6", "", ""},
		{"filtered", ">= 6.1.x-0", ".*-rc.*", false, podinfo, "6.1.6-rc.1", "", ""},
		{"a filter admits no pre-release", ">= 6.1.0", ".*-rc.*", false, podinfo, "", "no match found for semver: >= 6.1.0",
			"only pre-releases match, the newest is 6.1.6-rc.1: name it exactly or use the range \">= 6.1.0-0\""},
		{"filter is not anchored", "*", "1.5", false, podinfo, "6.1.5", "", ""},
		{"nothing left", ">= 6.1.x-0", ".*-alpha.*", false, podinfo, "", "no match found for semver: >= 6.1.x-0", "spec.ref.semverFilter matches none of the 7 tags"},
		{"no match", "7.x", "", false, podinfo, "", "no match found for semver: 7.x", "newest published version is 6.1.6"},
		{"no tags", "7.x", "", false, nil, "", "no match found for semver: 7.x", ""},
		{"bad range", "<6.1.x || blah", "", false, podinfo, "", "semver '<6.1.x || blah' parse error: improper constraint: <6.1.x || blah",
			`use a version such as "1.2.3" or a range such as "1.2.x", "^1.2.0" or ">=1.2.0 <2.0.0"`},
		{"bad filter", "*", "(", false, podinfo, "", "error parsing regexp: missing closing ): `(`", ""},
		{"a v in front", "*", "", false, []string{"v1.2.3", "v1.2"}, "v1.2.3", "", ""},
		{"two dots are needed", "*", "", false, []string{"1.2", "1"}, "", "no match found for semver: *",
			`version "1.2" is published but has fewer than three parts: use exactly "1.2"`},
		{"build metadata of charts", ">= 6.2.0", "", true, refs, "6.2.1_ref.1234567", "", ""},
		{"an underscore elsewhere", ">= 6.2.0", "", false, refs, "6.2.1", "", ""},
		{"a filter sees the tag", ">= 6.2.0", "_ref", true, refs, "6.2.1_ref.1234567", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := NewTagRange(tt.text, tt.filter, tt.helm)
			got := ""
			if err == nil {
				got, err = r.Choose(tt.tags)
			}
			if tt.err == "" && err != nil || tt.err != "" && fmt.Sprint(err) != tt.err || got != tt.want {
				t.Errorf("got %q, %v\nwant %q, %s", got, err, tt.want, tt.err)
			}
			if hint := strings.Join(finding.Hints(err), "; "); hint != tt.hint {
				t.Errorf("hint %q\nwant %q", hint, tt.hint)
			}
		})
	}
}

// TestTagRangeLimit refuses a filter that may take too long.
func TestTagRangeLimit(t *testing.T) {
	r, err := NewTagRange("*", "(x?){100}y", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Choose(slices.Repeat([]string{strings.Repeat("x", 100)}, 10_000)); !errors.Is(err, bound.ErrPattern) {
		t.Errorf("got %v", err)
	}
}
