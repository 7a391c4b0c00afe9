package action

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestProgram runs the program of this repository in the action, on the example that needs no network.
func TestProgram(t *testing.T) {
	top, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "helmsrc")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = top
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	start := func(t *testing.T) *runner {
		r := newRunner(t)
		inputs(r)
		r.check(os.Symlink(program, r.dir+"/bin/helmsrc"))
		r.check(os.CopyFS(r.dir+"/work", os.DirFS(filepath.Join(top, "examples"))))
		r.env["GITHUB_ACTIONS"], r.env["GITHUB_STEP_SUMMARY"], r.env["GITHUB_WORKSPACE"] = "true", r.dir+"/summary", r.dir+"/work"
		return r
	}

	var written []string
	outputs := func(r *runner) (names []string) {
		for _, m := range regexp.MustCompile(`(?m)^([a-z-]+)(?:=|<<)`).FindAllStringSubmatch(r.read("output"), -1) {
			names = append(names, m[1])
		}
		return names
	}

	t.Run("fetch", func(t *testing.T) {
		r := start(t)
		for k, v := range map[string]string{
			"COMMAND": "fetch", "FILES": "podinfo", "OBJECTS": "HelmChart/podinfo", "SARIF": "true", "REPORTS": "junit=junit.xml",
			"ARGS": "--source=HelmRepository/podinfo=charts\n--output=name", "HELMSRC_ARTIFACTS_DIR": r.dir + "/temp/helmsrc/artifacts",
		} {
			r.env[k] = v
		}
		r.holds(r.run("run.sh", 0), "helmchart.source.toolkit.fluxcd.io/podinfo")
		r.holds(r.read("temp/helmsrc.sarif"), `"2.1.0"`)
		r.holds(r.read("work/junit.xml"), "<testsuite")
		r.holds(r.read("summary"), "podinfo")
		if _, err := os.Stat(r.dir + "/temp/helmsrc/artifacts/helmchart/default/podinfo/podinfo-6.9.2.tgz"); err != nil {
			t.Error(err)
		}
		written = append(written, outputs(r)...)
	})

	t.Run("plan", func(t *testing.T) {
		r := start(t)
		for name, replicas := range map[string]string{"before": "1", "after": "2"} {
			r.check(os.Mkdir(r.dir+"/work/"+name, 0o700))
			r.check(os.WriteFile(r.dir+"/work/"+name+"/release.yaml", []byte(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: app, namespace: apps}
spec:
  interval: 5m
  chartRef: {kind: OCIRepository, name: app}
  values: {replicas: `+replicas+`}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: app, namespace: apps}
spec: {interval: 5m, url: "oci://registry.example.org/app", ref: {tag: 1.0.0}}
`), 0o600))
		}
		r.env["COMMAND"], r.env["FILES"], r.env["ARGS"] = "plan", "after", "--against=./before\n--fail-on-change"
		r.holds(r.run("run.sh", 4), "release config values changed: replicas")
		for name, want := range map[string]string{"changed": "true", "install": "0", "upgrade": "1", "none": "0", "uninstall": "0", "blocked": "0"} {
			if !regexp.MustCompile(`(?m)^plan-` + name + `<<(\w+)\n` + want + `$`).MatchString(r.read("output")) {
				t.Errorf("plan-%s is not %s\n%s", name, want, r.read("output"))
			}
		}
		written = append(written, outputs(r)...)
		r.env["ARGS"] = "--against=./after"
		r.check(os.Remove(r.dir + "/output"))
		r.run("run.sh", 0)
		if !regexp.MustCompile(`(?m)^plan-changed<<(\w+)\nfalse$`).MatchString(r.read("output")) {
			t.Errorf("what is equal changed\n%s", r.read("output"))
		}
	})

	t.Run("outputs", func(t *testing.T) {
		b, err := os.ReadFile(filepath.Join(top, "action.yml"))
		if err != nil {
			t.Fatal(err)
		}
		var listed []string
		for _, m := range regexp.MustCompile(`value: \$\{\{ steps\.run\.outputs\.([a-z-]+) \}\}`).FindAllStringSubmatch(string(b), -1) {
			if !slices.Contains(written, m[1]) {
				t.Errorf("nothing writes the output %s", m[1])
			}
			listed = append(listed, m[1])
		}
		for _, name := range written {
			if !slices.Contains(listed, name) {
				t.Errorf("action.yml does not list the output %s", name)
			}
		}
	})

	t.Run("no run", func(t *testing.T) {
		r := start(t)
		r.env["FILES"], r.env["SARIF"], r.env["ARGS"] = "podinfo", "true", "--nonsense"
		r.holds(r.run("run.sh", 2), "::error title=HS008 no-run::unknown flag: --nonsense")
		r.holds(r.read("temp/helmsrc.sarif"), `"executionSuccessful": false`)
		if got := r.read("output"); strings.Contains(got, "sarif-file=") {
			t.Errorf("GITHUB_OUTPUT %q", got)
		}
	})

	t.Run("validate", func(t *testing.T) {
		r := start(t)
		chart, err := os.ReadFile(r.dir + "/work/podinfo/helmchart.yaml")
		r.check(err)
		r.check(os.WriteFile(r.dir+"/work/podinfo/helmchart.yaml", []byte(strings.Replace(string(chart), "chart:", "chrat:", 1)), 0o600))
		r.env["FILES"], r.env["SARIF"] = "podinfo", "true"
		r.holds(r.run("run.sh", 1), "::error file=podinfo/helmchart.yaml,line=", "chrat")
		r.holds(r.read("output"), "exit-code=1\n", "sarif-file="+r.dir+"/temp/helmsrc.sarif\n")
		r.holds(r.read("temp/helmsrc.sarif"), "podinfo/helmchart.yaml")
	})
}
