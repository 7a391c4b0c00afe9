package program

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// hiddenComment matches a comment, which is not rendered.
var hiddenComment = regexp.MustCompile(`(?s)<!--.*?-->`)

// TestReadme: the screen in the README is the output of the program, its second command works unchanged, and the page is short
// enough to be read.
func TestReadme(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(b), "\r\n", "\n")
	if n := len(strings.Fields(hiddenComment.ReplaceAllString(text, ""))); n > 640 {
		t.Errorf("it has %d words, and code: more belongs into docs", n)
	}
	_, screen, _ := strings.Cut(text, "```console\n$ helmsrc validate -f examples/mistake\n")
	screen, _, _ = strings.Cut(screen, "```")
	s := &stage{t: t, dir: t.TempDir()}
	s.write(stateDir+"/network", helmtest.NewNetwork().String())
	if err := os.CopyFS(filepath.Join(s.dir, "examples"), os.DirFS("examples")); err != nil {
		t.Fatal(err)
	}
	if out, err := s.command("validate", "-f", "examples/mistake").CombinedOutput(); err == nil || string(out) != screen {
		t.Errorf("%v: the program prints\n%s\nthe README says\n%s", err, out, screen)
	}
	_, command, _ := strings.Cut(text, "\ngo run . ")
	command, _, _ = strings.Cut(command, "\n")
	if out, err := s.command(strings.Fields(command)...).CombinedOutput(); err != nil || !strings.HasPrefix(command, "fetch ") {
		t.Errorf("go run . %s: %v\n%s", command, err, out)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "artifacts/helmchart/default/podinfo")); err != nil {
		t.Error(err)
	}
}

// TestExamples runs the README's first command, on a network without a single host.
func TestExamples(t *testing.T) {
	t.Parallel()
	s := &stage{t: t, dir: t.TempDir()}
	s.write(stateDir+"/network", helmtest.NewNetwork().String())
	examples, err := filepath.Abs("examples")
	if err != nil {
		t.Fatal(err)
	}
	manifests := filepath.Join(examples, "podinfo")
	source := "HelmRepository/podinfo=" + filepath.Join(examples, "charts")
	out, err := s.command("fetch", "-f", manifests, "--source", source, "-o", "wide").Output()
	if err != nil {
		t.Fatalf("fetch: %v\n%s", err, out)
	}
	if want := "pulled 'podinfo' chart with version '6.9.2'"; !strings.Contains(string(out), want) {
		t.Errorf("no %q in\n%s", want, out)
	}
	s.checkArtifacts()
	s.run("validate", "-f", manifests)

	release := filepath.Join(examples, "release")
	out, err = s.command("fetch", "-f", release, "--source", source, "-o", "table", "HelmRelease/podinfo").CombinedOutput()
	if want := "chart 'podinfo' with version '6.9.2' from HelmChart flux-system/apps-podinfo"; err != nil || !strings.Contains(string(out), want) {
		t.Errorf("fetch: %v, no %q in\n%s", err, want, out)
	}
	s.run("validate", "-f", release)

	// Without the directory the example needs the public repository.
	out, err = s.command("fetch", "-f", manifests, "--retries", "0", "-d", "none").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 5 {
		t.Errorf("without a network: %v\n%s", err, out)
	}
}
