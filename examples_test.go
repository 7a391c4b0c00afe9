package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

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
	out, err := s.command("fetch", "-f", manifests, "--source", source, "-o", "table").Output()
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
