package resolve_test

import (
	"testing"

	"github.com/helmsrc/helmsrc/internal/resolve"
)

// IA37 and IA38.
func TestNext(t *testing.T) {
	cands := []resolve.Candidate{{Version: "9.9.9", Removed: true}}
	for _, v := range []string{
		"0.1.0", "0.2.0", "0.10.0", "1.0.0-rc.2", "1.0.0-rc.10", "1.0.0", "1.0.1", "1.1.5", "1.2.0-rc.1", "v2.0.0", "2.1", "3.0.0-rc.1", "01.02.03", "latest",
	} {
		cands = append(cands, resolve.Candidate{Version: v})
	}
	for _, tt := range []struct {
		current string
		level   resolve.Level
		want    string
	}{
		{"1.0.0", resolve.Patch, "1.0.1"},
		{"1.0.0", resolve.Minor, "1.1.5"},
		{"1.0.0", resolve.Major, "v2.0.0"},
		{"v1.0.0", resolve.Minor, "1.1.5"},
		{"0.1.0", resolve.Minor, "0.10.0"},
		{"0.1.0", resolve.Patch, ""},
		{"1.0.5", resolve.Patch, ""}, // not published itself, and nothing is newer
		{"1.0.4", resolve.Minor, "1.1.5"},
		{"1.0.0-rc.2", resolve.Patch, "1.0.1"},
		{"1.2.0-beta.1", resolve.Patch, "1.2.0-rc.1"},
		{"2.0.0", resolve.Major, ""},
		{"3.0.0-beta", resolve.Major, "3.0.0-rc.1"},
		{"1.0", resolve.Major, ""}, {"=1.0.0", resolve.Major, ""}, {"1.0.x", resolve.Major, ""}, {"1.0.0 - 2.0.0", resolve.Major, ""},
		{"", resolve.Major, ""}, {"latest", resolve.Major, ""},
	} {
		got, found := resolve.Next(cands, tt.current, tt.level)
		if got.Version != tt.want || found != (tt.want != "") {
			t.Errorf("%s, %s: got %q, want %q", tt.current, tt.level, got.Version, tt.want)
		}
	}
}
