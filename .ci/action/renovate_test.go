package action

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// dependency is what Renovate finds in a file.
type dependency struct{ DepName, CurrentValue, Datasource string }

// TestRunnerRenovate has Renovate judge the example of its configuration, and find with it what is pinned: charts in manifests, and
// this program where jobs of GitHub and GitLab and hooks name it. Renovate looks nothing up.
func TestRunnerRenovate(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"renovate.json":                 example(t, "ci/renovate.json"),
		".gitlab-ci.yml":                example(t, "ci/gitlab-ci.yml"),
		".github/workflows/charts.yaml": example(t, "ci/update.yml"),
		"clusters/production/charts.yaml": `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: apps}
spec: {interval: 5m, url: https://charts.example.org}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: podinfo, namespace: apps}
spec: {interval: 5m, chart: {spec: {chart: podinfo, version: 6.5.0, sourceRef: {kind: HelmRepository, name: charts}}}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: signed, namespace: apps}
spec: {interval: 5m, url: oci://registry.example.org/charts/signed, ref: {tag: 1.2.3}}
`,
	}
	release := regexp.MustCompile(`HELMSRC_RELEASE: (\S+)`).FindStringSubmatch(files[".gitlab-ci.yml"])
	if release == nil {
		t.Fatal("the example names no release")
	}
	files[".pre-commit-config.yaml"] = "repos:\n- repo: https://github.com/helmsrc/helmsrc\n  rev: " + release[1] + "\n  hooks: [{id: helmsrc-validate}]\n"
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	renovate := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("RENOVATE"), name), args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "LOG_FORMAT=json", "LOG_LEVEL=debug", "RENOVATE_CACHE_DIR="+t.TempDir(), "HTTPS_PROXY=http://127.0.0.1:9", "PATH="+os.Getenv("RENOVATE")+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	renovate("renovate-config-validator", "--strict", "renovate.json")
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	found := map[dependency]bool{}
	for line := range strings.Lines(renovate("renovate", "--platform=local", "--dry-run=extract")) {
		var log struct {
			PackageFiles map[string][]struct{ Deps []dependency }
		}
		if json.Unmarshal([]byte(line), &log) != nil {
			continue
		}
		for _, list := range log.PackageFiles {
			for _, file := range list {
				for _, d := range file.Deps {
					found[d] = true
				}
			}
		}
	}
	for _, want := range []dependency{
		{"podinfo", "6.5.0", "helm"},
		{"registry.example.org/charts/signed", "1.2.3", "docker"},
		{"helmsrc/helmsrc", release[1], "github-releases"},
		{"helmsrc/helmsrc", release[1], "github-tags"},
	} {
		if !found[want] {
			t.Errorf("Renovate does not find %+v, but %+v", want, found)
		}
	}
}
