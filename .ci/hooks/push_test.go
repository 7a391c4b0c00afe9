package hooks

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var guideConfiguration = regexp.MustCompile("(?s)`\\.pre-commit-config\\.yaml`:\n\n```yaml[^\n]*\n(.*?)```")

// TestGuide uses the configuration of the guide, with the hooks that find the program in the PATH: validate runs when
// a commit is made, fetch when it is pushed. They are installed from the tag that the guide names. Before pre-commit 3.2 the stage is called as the guide says.
func TestGuide(t *testing.T) {
	s := newSite(t)
	page, err := os.ReadFile(filepath.Join(s.hooks, "docs/guides/pre-commit.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := guideConfiguration.FindStringSubmatch(string(page))
	if found == nil || !strings.Contains(found[1], "rev: "+tag+"\n") || !strings.Contains(string(page), "`stages: [push]`") || !strings.Contains(found[1], "stages: [pre-push]") {
		t.Fatal("the guide has no configuration of this release, or does not name both names of the stage")
	}
	stage := "pre-push"
	if version := output(t, "", nil, "pre-commit", "--version"); strings.HasPrefix(version, "pre-commit 3.0.") || strings.HasPrefix(version, "pre-commit 3.1.") {
		stage = "push"
	}
	s.write(".pre-commit-config.yaml", strings.NewReplacer("https://github.com/helmsrc/helmsrc", s.hooks,
		"helmsrc-validate", "helmsrc-validate-system", "helmsrc-fetch", "helmsrc-fetch-system", "pre-push", stage).Replace(found[1]))
	s.save("use the hooks")
	remote := t.TempDir()
	s.git(remote, "init", "-q", "--bare", "-b", "main")
	s.git(s.dir, "remote", "add", "origin", remote)
	s.git(s.dir, "push", "-q", "origin", "main")
	output(t, s.dir, s.env, "pre-commit", "install")
	output(t, s.dir, s.env, "pre-commit", "install", "--hook-type", "pre-push")

	s.write("repository.yaml", strings.Replace(repository("http://127.0.0.1:9"), ", secretRef: {name: login}", "", 1))
	s.write("chart.yaml", strings.Replace(chart("podinfo", ""), "version:", "vresion:", 1))
	s.git(s.dir, "add", "-A")
	s.fails("vresion", "git", "commit", "-q", "-m", "a mistake")
	s.write("chart.yaml", chart("podinfo", ""))
	s.git(s.dir, "add", "-A")
	s.git(s.dir, "commit", "-q", "-m", "a chart of a server that is down")
	s.fails("helmsrc fetch", "git", "push", "origin", "main")
}

// fails runs a command that has to fail with a text.
func (s *site) fails(text, name string, args ...string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), name, args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if err == nil {
		s.t.Fatalf("%s %s succeeds:\n%s", name, strings.Join(args, " "), out)
	}
	s.holds(string(out), text)
}
