package resolve_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

var day = time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)

func published(versions ...string) []resolve.Candidate {
	var cands []resolve.Candidate
	for _, v := range versions {
		cands = append(cands, resolve.Candidate{Version: v})
	}
	return cands
}

// reference holds the versions of §12 case 22, not in order.
func reference() []resolve.Candidate {
	cands := published("0.1.5+b.min.minute", "0.0.1", "1.1.0-rc.1", "0.1.0", "0.1.5+c.now", "0.1.1", "1.0.0",
		"0.1.5+a.min.hour", "0.2.0")
	cands[0].Created = day.Add(-time.Minute)
	cands[4].Created = day
	cands[7].Created = day.Add(-time.Hour)
	return cands
}

func TestChooseFromIndex(t *testing.T) {
	tests := []struct {
		name, version, want, err string
	}{
		{"case 22: empty", "", "1.0.0", ""},
		{"case 22: star", "*", "1.0.0", ""},
		{"case 22: exact", "0.0.1", "0.0.1", ""},
		{"case 22: range", "<1.0.0", "0.2.0", ""},
		{"case 22: latest created of equal precedence", "0.1.5", "0.1.5+c.now", ""},
		{"case 22: no match", ">2.0.0", "", "no 'chart' chart with version matching '>2.0.0' found"},
		{"exact build metadata", "0.1.5+a.min.hour", "0.1.5+a.min.hour", ""},
		{"exact pre-release", "1.1.0-rc.1", "1.1.0-rc.1", ""},
		{"pre-releases asked for", ">=1.0.0-0", "1.1.0-rc.1", ""},
		{"pre-releases in one alternative", "0.1.x || >=1.1.0-0", "1.1.0-rc.1", ""},
		{"major only", "0", "0.2.0", ""},
		{"major and minor", "0.1", "0.1.5+c.now", ""},
		{"x", "0.1.x", "0.1.5+c.now", ""},
		{"tilde", "~0.1.0", "0.1.5+c.now", ""},
		{"caret of zero", "^0.1.0", "0.1.5+c.now", ""},
		{"hyphen", "0.1.0 - 0.2", "0.2.0", ""},
		{"comma", ">=0.1.0, <0.1.5", "0.1.1", ""},
		{"space", ">=0.1.0 <0.1.5", "0.1.1", ""},
		{"greater than a major", ">0", "1.0.0", ""},
		{"v in front of a constraint", "v0.1.1", "0.1.1", ""},
		{"no such version", "0.1.9", "", "no 'chart' chart with version matching '0.1.9' found"},
		{"not a constraint", "latest", "", `improper constraint: "latest"`},
		{"quotes are escaped", "a\"\n", "", `improper constraint: "a\"\n"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, err := resolve.ChooseFromIndex("chart", reference(), test.version)
			check(t, c, err, test.want, test.err)
		})
	}
}

func check(t *testing.T, c resolve.Candidate, err error, want, wantErr string) {
	t.Helper()
	if c.Version != want {
		t.Errorf("chose %q, want %q", c.Version, want)
	}
	if got := text(err); got != wantErr {
		t.Errorf("error %q, want %q", got, wantErr)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestChooseFromTags(t *testing.T) {
	tags := []string{"0.0.1", "0.1.0", "0.1.1", "0.1.5_b", "0.1.5_c", "0.1.5_a", "0.2.0", "0.9.0", "0.10.0", "1.0.0",
		"1.1.0-rc.1", "latest", "v7.0.0", "7.0", "07.0.0", "sha256-abc.sig"}
	tests := []struct {
		name, version, want, err string
	}{
		{"case 23: empty", "", "1.0.0", ""},
		{"case 23: star", "*", "1.0.0", ""},
		{"case 23: at least", ">=0.1.5", "1.0.0", ""},
		{"case 23: x", "0.2.x", "0.2.0", ""},
		{"case 23: numeric, not lexical", "0.*", "0.10.0", ""},
		{"case 23: no match", ">2.0.0", "", "could not locate a version matching provided version string >2.0.0"},
		{"no creation times: greatest build metadata", "0.1.5", "0.1.5+c", ""},
		{"exact build metadata", "0.1.5+a", "0.1.5+a", ""},
		{"not a constraint", "latest", "", `improper constraint: "latest"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, err := resolve.ChooseFromTags(tags, test.version)
			check(t, c, err, test.want, test.err)
			if err == nil && c.Tag != strings.ReplaceAll(test.want, "+", "_") {
				t.Errorf("tag %q", c.Tag)
			}
		})
	}
	if _, err := resolve.ChooseFromTags([]string{"latest"}, "*"); text(err) != "no chart version found" {
		t.Errorf("no usable tags: %v", err)
	}
}

func TestIsExact(t *testing.T) {
	// case 23: an exact version needs no list of tags.
	for version, want := range map[string]bool{
		"0.1.0": true, "v1.2.3": true, "1.2.3+meta": true, "1.2.3-rc.1": true, "2025.02.03": true, "1.2-rc.1": true,
		"": false, "*": false, "1": false, "1.2": false, "1.2.x": false, ">=1.2.3": false, "1.2.3.4": false,
		"latest": false, "1.2.3 ": false, strings.Repeat("1", 300) + ".0.0": false,
	} {
		if got := resolve.IsExact(version); got != want {
			t.Errorf("IsExact(%q) = %v", version, got)
		}
	}
}

func TestChooseTies(t *testing.T) {
	at := func(version string, created time.Time, url string) resolve.Candidate {
		return resolve.Candidate{Version: version, Created: created, URLs: []string{url}}
	}
	tests := []struct {
		name, version, want string
		cands               []resolve.Candidate
	}{
		{"created", "*", "b", []resolve.Candidate{at("1.0.0+z", day, "a"), at("1.0.0+a", day.Add(1), "b")}},
		{"build metadata", "*", "b", []resolve.Candidate{at("1.0.0+a", day, "a"), at("1.0.0+b", day, "b")}},
		{"build metadata is compared lexically", "*", "a",
			[]resolve.Candidate{at("1.0.0+9", day, "a"), at("1.0.0+10", day, "b")}},
		{"same instant in two zones", "*", "b", []resolve.Candidate{at("1.0.0+a", day, "a"),
			at("1.0.0+b", day.In(time.FixedZone("", 3600)), "b")}},
		{"first in the list", "*", "a", []resolve.Candidate{at("1.0.0", day, "a"), at("1.0.0", day, "b")}},
		{"exact version twice: created", "1.0.0", "b",
			[]resolve.Candidate{at("1.0.0", day, "a"), at("1.0.0", day.Add(1), "b"), at("1.0.0", day, "c")}},
		{"exact version twice: first", "1.0.0", "a",
			[]resolve.Candidate{at("1.0.0", day, "a"), at("1.0.0", day, "b")}},
		{"string before constraint", "v1.0.0", "b",
			[]resolve.Candidate{at("1.0.0", day.Add(1), "a"), at("v1.0.0", day, "b")}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, err := resolve.Choose(test.cands, test.version)
			if err != nil || c.URLs[0] != test.want {
				t.Errorf("chose %+v, %v", c, err)
			}
		})
	}
}

func TestChooseLenientVersions(t *testing.T) {
	cands := published("1.2", "v1.2.3", "2025.02.03", "01.9.0", "nightly", "1.10.0", "v1.2.4.5")
	for version, want := range map[string]string{
		"*":          "2025.02.03",
		"<2000":      "1.10.0",
		"1.2.3":      "v1.2.3",
		"1.9.x":      "01.9.0",
		"2025.2.3":   "2025.02.03",
		"1.2":        "1.2",     // two components: exactly this string only
		"nightly":    "nightly", // no version at all
		"v1.2.4.5":   "v1.2.4.5",
		">=1.2 <1.3": "v1.2.3",
	} {
		if c, err := resolve.Choose(cands, version); err != nil || c.Version != want {
			t.Errorf("%s: chose %q, %v, want %q", version, c.Version, err, want)
		}
	}
}

func TestChooseRemoved(t *testing.T) {
	cands := published("1.0.0", "1.1.0", "1.1.0", "1.2.0")
	cands[1].Removed, cands[3].Removed = true, true
	cands[1].Created = day
	for version, removed := range map[string]bool{"1.2.0": true, "1.1.0": false, "*": false, "^1.1": false} {
		c, err := resolve.Choose(cands, version)
		if err != nil || c.Removed != removed {
			t.Errorf("%s: chose %+v, %v", version, c, err)
		}
	}
}

func TestConstraintLimits(t *testing.T) {
	for name, constraint := range map[string]string{
		"33 alternatives": strings.Repeat("1.0.0||", 32) + "1.0.0",
		"513 bytes":       ">=1.0.0" + strings.Repeat(" ", 506),
	} {
		_, err := resolve.Choose(reference(), constraint)
		var improper *finding.Problem
		if !errors.As(err, &improper) || len(err.Error()) > 100 {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, err := resolve.Choose(reference(), strings.Repeat("1.0.0||", 31)+"9.x")
	check(t, c, err, "1.0.0", "")
}

func TestHints(t *testing.T) {
	removed := published("1.0.0", "2.0.0")
	removed[1].Removed = true
	tests := []struct {
		name    string
		cands   []resolve.Candidate
		version string
		want    string
	}{
		{"newest", published("6.9.1", "6.9.0", "7.0.0-rc.1"), "^8.0", "newest published version is 6.9.1"},
		{"only pre-releases", published("1.0.0-rc.1", "1.0.0-rc.2"), "*",
			`only pre-releases match, the newest is 1.0.0-rc.2: name it exactly or use the range ">=0.0.0-0"`},
		{"pre-release in range", published("0.9.0", "1.1.0-rc.2"), "^1.0",
			`only pre-releases match, the newest is 1.1.0-rc.2: name it exactly or use the range "^1.0-0"`},
		{"no simple wider range", published("0.9.0", "1.1.0-rc.2"), ">=1.0.0 <=2.0.0 || 5",
			`only pre-releases match, the newest is 1.1.0-rc.2: name it exactly`},
		{"removed", removed, ">1", "version 2.0.0 matches but is marked as removed: only its exact version selects it"},
		{"two components", published("1.0", "1.1", "0.9.0"), "^1",
			`version "1.1" is published but has fewer than three parts: use exactly "1.1"`},
		{"nothing published", nil, "^1", ""},
		{"nothing readable", published("nightly"), "^1", ""},
		{"latest", published("1.0.0"), "latest", `for the latest version leave the version out, or use "*"`},
		{"improper", published("1.0.0"), "not~a~range",
			`use a version such as "1.2.3" or a range such as "1.2.x", "^1.2.0" or ">=1.2.0 <2.0.0"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := resolve.Choose(test.cands, test.version)
			var hinter interface{ Hint() string }
			if !errors.As(err, &hinter) {
				t.Fatalf("%v gives no hints", err)
			}
			if got := hinter.Hint(); got != test.want {
				t.Errorf("hint %q, want %q", got, test.want)
			}
		})
	}
}

func TestHintOfPrefixedTag(t *testing.T) {
	for _, test := range []struct{ version, want string }{{"^1.2", "v1.3.0"}, {"1.x", "v1.3.0"}, {"^3", ""}} {
		_, err := resolve.ChooseFromTags([]string{"0.1.0", "v1.2.0", "v1.3.0", "v2.0.0", "vault"}, test.version)
		var noMatch *resolve.NoMatchError
		if !errors.As(err, &noMatch) || noMatch.PrefixedTag != test.want {
			t.Fatalf("%s: %#v", test.version, err)
		}
		if hint := noMatch.Hint(); !strings.Contains(hint, test.want) {
			t.Errorf("hint %q", hint)
		}
	}
	_, err := resolve.ChooseFromTags([]string{"v1.2.0"}, "*")
	var noMatch *resolve.NoMatchError
	if !errors.As(err, &noMatch) || noMatch.PrefixedTag != "v1.2.0" {
		t.Errorf("only prefixed tags: %#v", err)
	}
}

func TestNoMatchIsErrNoMatch(t *testing.T) {
	for _, cands := range [][]resolve.Candidate{nil, reference()} {
		if _, err := resolve.Choose(cands, ">2"); !errors.Is(err, resolve.ErrNoMatch) {
			t.Errorf("%v is no ErrNoMatch", err)
		}
	}
	if _, err := resolve.Choose(reference(), "latest"); errors.Is(err, resolve.ErrNoMatch) {
		t.Errorf("%v is ErrNoMatch", err)
	}
}

func TestFromTags(t *testing.T) {
	got := resolve.FromTags([]string{"1.0.0", "1.0.0_b.1", "v1.0.0", "1.0", "1.0.0-rc.1_x", "01.0.0", "latest", "", "1.0.0_a_b"})
	want := []resolve.Candidate{{Version: "1.0.0", Tag: "1.0.0"}, {Version: "1.0.0+b.1", Tag: "1.0.0_b.1"},
		{Version: "1.0.0-rc.1+x", Tag: "1.0.0-rc.1_x"}}
	same := func(a, b resolve.Candidate) bool { return a.Version == b.Version && a.Tag == b.Tag }
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("FromTags = %+v, want %+v", got, want)
	}
}
