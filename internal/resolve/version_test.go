package resolve_test

import (
	"errors"
	"testing"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

func TestSetMetadata(t *testing.T) {
	tests := []struct {
		name, version, meta, want, err string
	}{
		{"case 27: invalid", "6.17.4", "^", "", "failed to set SemVer metadata on chart version: invalid metadata string"},
		{"case 27: valid", "6.17.4", "foo", "6.17.4+foo", ""},
		{"case 55: commit", "0.1.0", "abcdefg12345", "0.1.0+abcdefg12345", ""},
		{"commit and generation", "0.1.0", "abcdefg12345.7", "0.1.0+abcdefg12345.7", ""},
		{"replaces", "1.2.3-rc.1+old", "7", "1.2.3-rc.1+7", ""},
		{"normalises two components", "1.2", "7", "1.2.0+7", ""},
		{"normalises v", "v1.2.3", "7", "1.2.3+7", ""},
		{"normalises leading zeros", "2025.02.03", "7", "2025.2.3+7", ""},
		{"leading zeros in metadata", "1.2.3", "007", "1.2.3+007", ""},
		{"not asked for", "v1.2", "", "v1.2", ""},
		{"empty identifier", "1.2.3", "a..b", "", "failed to set SemVer metadata on chart version: invalid metadata string"},
		{"no version", "nightly", "7", "", "failed to parse version from chart metadata as SemVer: invalid semantic version"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := resolve.SetMetadata(test.version, test.meta)
			if got != test.want || text(err) != test.err {
				t.Errorf("got %q, %v, want %q, %q", got, err, test.want, test.err)
			}
		})
	}
}

func TestValidateName(t *testing.T) {
	for _, name := range []string{"valid-chart-name", "a", "i-shall/not", "valid.chart.name", "1", "another/grafana"} {
		if err := resolve.ValidateName(name); err != nil {
			t.Errorf("case 39: %q: %v", name, err)
		}
	}
	for _, name := range []string{"iNvAlID-ChArT-NAmE!", "/", "not//a/valid/chart", "../valid-chart-name", "a_b", "/a",
		"a..b", "a\n", " a", "..", "ä"} {
		want := "invalid chart name '" + name + "': a valid name must be lower case letters and numbers " +
			"and MAY be separated with dashes (-), slashes (/) or periods (.)"
		if err := resolve.ValidateName(name); text(err) != want {
			t.Errorf("case 39: %q: error %q, want %q", name, text(err), want)
		}
	}
	if err := resolve.ValidateName(""); text(err) != "no name set for remote chart reference" {
		t.Errorf("case 25: empty name: %v", err)
	}
}

func TestValidateVersion(t *testing.T) {
	for _, version := range []string{"", "*", "1.2.3", "v1.2.3+b", "2025.02.03", "1.x", ">=1 <2", "~1.2 || ^3-0"} {
		if err := resolve.ValidateVersion(version); err != nil {
			t.Errorf("%q: %v", version, err)
		}
	}
	for _, version := range []string{"latest", "nightly", ">=", "1.2.3.4", "1.2.3 or 4"} {
		var improper *finding.Problem
		if err := resolve.ValidateVersion(version); !errors.As(err, &improper) || improper.Hint() == "" {
			t.Errorf("%q: %v", version, err)
		}
	}
}
