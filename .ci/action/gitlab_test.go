package action

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// TestGitLab runs the scripts of the example for GitLab, with a local release instead of one on GitHub.
func TestGitLab(t *testing.T) {
	b, err := os.ReadFile("../../examples/ci/gitlab-ci.yml")
	if err != nil {
		t.Fatal(err)
	}
	var pipeline map[string]struct {
		BeforeScript []string `yaml:"before_script"`
		Script       []string
	}
	if err := yaml.Unmarshal(b, &pipeline); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		code int
		want string
	}{{"good", 0, "helmsrc v1.2.3"}, {"altered", 1, "FAILED"}, {"no checksum", 1, "no file was verified"}} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRunner(t)
			rel := newRelease(t, r)
			switch tt.name {
			case "altered":
				rel.files["helmsrc_1.2.3_linux_amd64.tar.gz"] = []byte("other")
			case "no checksum":
				rel.files["checksums.txt"] = []byte(strings.Repeat("0", 64) + "  other.tar.gz\n")
			}
			r.program("apt-get", "")
			r.program("dpkg", "echo amd64")
			lines := append([]string{"set -eo pipefail"}, pipeline[".helmsrc"].BeforeScript...)
			lines = append(lines, pipeline["validate"].Script...)
			script := strings.NewReplacer("https://github.com/helmsrc/helmsrc/releases", r.env["RELEASES_URL"], "/usr/local/bin", r.dir+"/bin").Replace(strings.Join(lines, "\n"))
			cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
			cmd.Dir = filepath.Join(r.dir, "work")
			for k, v := range r.env {
				cmd.Env = append(cmd.Env, k+"="+v)
			}
			cmd.Env = append(cmd.Env, "HELMSRC_RELEASE=v1.2.3", "MANIFESTS=clusters/production")
			out, _ := cmd.CombinedOutput()
			if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != tt.code {
				t.Errorf("want exit code %d", tt.code)
			}
			r.holds(string(out), tt.want)
		})
	}
	if script := strings.Join(pipeline["fetch"].Script, "\n"); !strings.HasPrefix(script, "helmsrc fetch ") {
		t.Errorf("script %q", script)
	}
}
