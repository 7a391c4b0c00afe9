package helmtest_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// TestHelms checks the version of each Helm. On a fresh machine it builds them, minutes before the tests of the whole program
// need them, and outside of their time limit.
func TestHelms(t *testing.T) {
	t.Parallel()
	for version, build := range map[string]func() (string, error){"v3.": helmtest.Helm, "v4.": helmtest.Helm4} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			program, err := build()
			if err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), program, "version", "--short").CombinedOutput()
			if err != nil || !strings.HasPrefix(string(out), version) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
