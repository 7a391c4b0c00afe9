package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/bound"
)

func text(s string) *string { return &s }

func TestLatest(t *testing.T) {
	versions := []string{"1.0.2", "1.2.1", "2.0.0", "2.1.0-rc.1"}
	for _, tt := range []struct {
		name   string
		policy Policy
		tags   []string
		want   string
	}{
		{"IA1", Policy{Semver: text("1.x")}, versions, "1.2.1"},
		{"IA2", Policy{Semver: text(">=1.0.0")}, versions, "2.0.0"},
		{"IA3", Policy{Semver: text(">=1.0.0-0")}, versions, "2.1.0-rc.1"},
		{"IA4", Policy{Semver: text("1.x")}, []string{"1.0.1", "v1.0.1"}, "v1.0.1"},
		{"IA5 three parts", Policy{Semver: text("<3")}, []string{"1.2", "1.2.3", "01.02.04", "1.9-rc.1"}, "01.02.04"},
		{"IA5 prerelease", Policy{Semver: text(">=1.8.0-0 <2")}, []string{"1.2", "1.2.3", "01.02.04", "1.9-rc.1"}, "1.9-rc.1"},
		{"IA6", Policy{Semver: text("*")}, []string{"1.0.1", "1.0.2_b1"}, "1.0.1"},
		{"IA6 extract", Policy{Semver: text("*"), Pattern: `^(?P<v>[0-9.]+)_(?P<b>.+)$`, Extract: "$v+$b"}, []string{"1.0.1", "1.0.2_b1"}, "1.0.2_b1"},
		{"IA8 asc", Policy{Alphabetical: text("asc")}, []string{"aa", "B", "z"}, "z"},
		{"IA8 desc", Policy{Alphabetical: text("desc")}, []string{"aa", "B", "z"}, "B"},
		{"IA9", Policy{Numerical: text("")}, []string{"9", "10", "100"}, "100"},
		{"numerical desc", Policy{Numerical: text("desc")}, []string{"9", "10", "100"}, "9"},
		{"equal numbers", Policy{Numerical: text("asc")}, []string{"7", "07", "007"}, "007"},
		{"IA10 pattern", Policy{Numerical: text("asc"), Pattern: "^[0-9]+$"}, []string{"1", "10", "latest"}, "10"},
		{"IA11", Policy{Numerical: text("asc"), Pattern: `^main-[a-f0-9]+-(?P<ts>[0-9]+)`, Extract: "$ts"},
			[]string{"main-0123456-1700000300", "main-0123457-1700000200", "dev-0123456-1800000000"}, "main-0123456-1700000300"},
		{"IA12", Policy{Semver: text("*"), Pattern: `^(?P<v>.*)-r[0-9]+$`, Extract: "$v"}, []string{"1.0.1-r1", "1.0.1-r2", "1.0.1-r10"}, "1.0.1-r1"},
		{"semver before the others", Policy{Semver: text("1.x"), Alphabetical: text("asc")}, []string{"1.0.0", "zz"}, "1.0.0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tags, err := Listed(tt.tags, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tt.policy.Latest(tags)
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestLatestFails(t *testing.T) {
	for _, tt := range []struct {
		policy Policy
		tags   []string
		want   string
	}{
		{Policy{}, []string{"1"}, "given ImagePolicyChoice object is invalid"},
		{Policy{Semver: text("one")}, []string{"1.0.0"}, `improper constraint: "one"`},
		{Policy{Semver: text("")}, []string{"1.0.0"}, `improper constraint: ""`},
		{Policy{Alphabetical: text("up")}, []string{"1"}, "invalid order argument provided: 'up'"},
		{Policy{Semver: text("*"), Pattern: "^("}, []string{"1.0.0"}, "invalid regular expression pattern '^('"},
		{Policy{Semver: text("*"), Pattern: "x"}, []string{"1.0.0"}, "version list argument cannot be empty"},
		{Policy{Semver: text("*")}, nil, "no tags in database"},
		{Policy{Semver: text("2.x")}, []string{"1.0.0"}, "unable to determine latest version from provided list"},
		{Policy{Numerical: text("asc")}, []string{"1", "10", "latest"}, "failed to parse invalid numeric value 'latest'"},
	} {
		if got, err := tt.policy.Latest(tt.tags); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: got %q, %v, want %s", tt.policy, got, err, tt.want)
		}
	}
}

// IA13 and IA16.
func TestListed(t *testing.T) {
	tags := []string{"x.sig", "x.att", "y", "a\nb", `a"`, "a #b", "\x1b[0m", strings.Repeat("a", 200), ""}
	for _, tt := range []struct {
		exclusions, want []string
	}{
		{nil, []string{"y", "x.att"}},
		{[]string{}, []string{"y", "x.att"}},
		{[]string{"^y"}, []string{"x.sig", "x.att"}},
	} {
		if got, err := Listed(tags, tt.exclusions); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %q, %v, want %q", tt.exclusions, got, err, tt.want)
		}
	}
	many := slices.Repeat([]string{strings.Repeat("x", 100)}, 10_000)
	if _, err := Listed(many, []string{"(x?){100}y"}); !errors.Is(err, bound.ErrPattern) {
		t.Errorf("got %v", err)
	}
	if _, err := (Policy{Semver: text("*"), Pattern: "(x?){100}y"}).Latest(many); !errors.Is(err, bound.ErrPattern) {
		t.Errorf("got %v", err)
	}
	if _, err := Listed(tags, []string{"("}); err == nil || !strings.HasPrefix(err.Error(), "scan failed: failed to compile regex (:") {
		t.Errorf("got %v", err)
	}
}

// IA22 and IA23.
func TestParseMarker(t *testing.T) {
	want := Marker{"default", "app", Whole}
	for _, comment := range []string{
		`# {"$imagepolicy": "default:app"}`, `#{"$imagepolicy":"default:app"}`, "##\t{\t\"$imagepolicy\": \"default:app\"}",
		`# {"by": "me", "$imagepolicy": "default:app"}`, `# {"$imagepolicy": "x:y", "$imagepolicy": "default:app"}`,
	} {
		if got, found, err := ParseMarker(comment); got != want || !found || err != nil {
			t.Errorf("%s: got %v, %t, %v", comment, got, found, err)
		}
	}
	for comment, part := range map[string]Part{
		`# {"$imagepolicy": "default:app:tag"}`: Tag, `# {"$imagepolicy": "default:app:name"}`: Name, `# {"$imagepolicy": "default:app:digest"}`: Digest,
	} {
		if got, _, err := ParseMarker(comment); got != (Marker{"default", "app", part}) || err != nil {
			t.Errorf("%s: got %v, %v", comment, got, err)
		}
	}
	for _, comment := range []string{"", "# a comment", `# {"$ref": "#/definitions/io.k8s.cli.setters.a:b"}`} {
		if _, found, err := ParseMarker(comment); found || err != nil {
			t.Errorf("%s: got %t, %v", comment, found, err)
		}
	}
	for _, comment := range []string{
		`# see {"$imagepolicy": "default:app"}`, `# {"$imagepolicy": "default:app"} x`, `# {"$imagepolicy": "default:app",}`,
		`# {"$imagepolicy": "a:b"} {"$imagepolicy": "a:c"}`, `# {"$imagepolicy": "default:app", "n": 1}`, `# {"$imagepolicy": 1}`,
		`# {"$imagepolicy": "default/app"}`, `# {"$imagepolicy": "default:app:version"}`, `# {"$imagepolicy": "default:app:"}`,
	} {
		if _, found, err := ParseMarker(comment); found || err == nil {
			t.Errorf("%s: got %t, %v", comment, found, err)
		}
	}
}

// IA18.
func TestPart(t *testing.T) {
	image := Image{"r/app", "1.2.1", "sha256:ab"}
	for part, want := range map[Part]string{Whole: "r/app:1.2.1@sha256:ab", Tag: "1.2.1", Name: "r/app", Digest: "sha256:ab"} {
		if got, err := image.Part(part); got != want || err != nil {
			t.Errorf("%s: got %q, %v", part, got, err)
		}
	}
	image.Digest = ""
	if got, err := image.Part(Whole); got != "r/app:1.2.1" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := image.Part(Digest); err == nil {
		t.Errorf("an unknown digest is %q", got)
	}
}
