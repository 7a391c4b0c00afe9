package program

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// TestManifestLimits reads a file of manifests that exceeds a limit. The other files are still processed.
func TestManifestLimits(t *testing.T) {
	t.Parallel()
	const repository = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: podinfo}\n" +
		"spec: {interval: 5m, url: \"http://repo.test\"}\n"
	const other = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"
	for _, tc := range []struct {
		name, content string
		want          int
		stderr        string
	}{
		{"as many documents as there may be", strings.Repeat(other, 49_999), 0, "1 ready"},
		{"100,000 documents", strings.Repeat(other, 100_000), 2, "error: many.yaml"},
		{"33 MiB", "# " + strings.Repeat("x", 33<<20) + "\n", 2, "error: many.yaml"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(t, "podinfo 6.5.0\n")
			s.write("many.yaml", tc.content)
			s.write("repository.yaml", repository)
			cmd := s.command("fetch", "-f", "many.yaml", "-f", "repository.yaml", "-o", "name")
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			code := 0
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				code = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if code != tc.want || !strings.Contains(stderr.String(), tc.stderr) {
				t.Errorf("exit code %d, want %d; stderr:\n%s", code, tc.want, &stderr)
			}
			if want := "helmrepository.source.toolkit.fluxcd.io/podinfo\n"; string(out) != want {
				t.Errorf("stdout %q, want %q", out, want)
			}
		})
	}
}
