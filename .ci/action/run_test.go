package action

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// inputs are the defaults of action.yml, as its environment.
func inputs(r *runner) {
	for k, v := range map[string]string{
		"COMMAND": "validate", "FILES": ".", "RECURSIVE": "true", "OBJECTS": "", "ARGS": "", "REPORTS": "", "SARIF": "false", "COMMENT": "false",
	} {
		r.env[k] = v
	}
}

func TestRun(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		want []string
	}{
		{"defaults", nil, []string{"validate", "--recursive", "--filename=.", "--"}},
		{"lists", map[string]string{
			"COMMAND": "fetch", "RECURSIVE": "false", "FILES": "a.yaml\n\nb c.yaml\r\n*.yaml", "OBJECTS": "HelmChart/apps/podinfo\npodinfo\n",
			"ARGS": "--namespace=apps\n--exit-zero", "REPORTS": "junit=out/junit.xml\nmarkdown=summary.md",
		}, []string{
			"fetch", "--filename=a.yaml", "--filename=b c.yaml", "--filename=*.yaml", "--report=junit=out/junit.xml", "--report=markdown=summary.md",
			"--namespace=apps", "--exit-zero", "--", "HelmChart/apps/podinfo", "podinfo",
		}},
		{"lock", map[string]string{"COMMAND": "lock"}, []string{"lock", "--check", "--recursive", "--filename=.", "--"}},
		{"nothing is evaluated", map[string]string{
			"FILES": "$(touch pwned)\n`touch pwned`\n; touch pwned\n'\"\\", "OBJECTS": "--exit-zero\n$(touch pwned)", "ARGS": "-n $(touch pwned)\n&& touch pwned",
		}, []string{
			"validate", "--recursive", "--filename=$(touch pwned)", "--filename=`touch pwned`", "--filename=; touch pwned", "--filename='\"\\",
			"-n $(touch pwned)", "&& touch pwned", "--", "--exit-zero", "$(touch pwned)",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRunner(t)
			inputs(r)
			for k, v := range tt.env {
				r.env[k] = v
			}
			r.program("helmsrc", "echo documents")
			r.check(os.WriteFile(r.dir+"/work/x.yaml", nil, 0o600))
			r.holds(r.run("run.sh", 0), "documents")
			if got, want := r.read("helmsrc.args"), strings.Join(tt.want, "\n")+"\n"; got != want {
				t.Errorf("arguments\n%s\nwant\n%s", got, want)
			}
			if got := r.read("output"); got != "exit-code=0\n" {
				t.Errorf("GITHUB_OUTPUT %q", got)
			}
		})
	}
}

// TestExitCode: the step fails as the program did, and what comes after it knows how.
func TestExitCode(t *testing.T) {
	r := newRunner(t)
	inputs(r)
	r.env["SARIF"] = "true"
	r.program("helmsrc", `for a; do case $a in --report=sarif=*) echo '{}' >"${a#--report=sarif=}"; esac; done
echo ready=1 >>"$GITHUB_OUTPUT"
exit 3`)
	r.run("run.sh", 3)
	if got, want := r.read("output"), "ready=1\nexit-code=3\nsarif-file="+r.dir+"/temp/helmsrc.sarif\n"; got != want {
		t.Errorf("GITHUB_OUTPUT %q, want %q", got, want)
	}
	// A report of an earlier step is not uploaded a second time.
	r.program("helmsrc", "exit 2")
	r.run("run.sh", 2)
	if got := r.read("output"); strings.Count(got, "sarif-file=") != 1 || !strings.HasSuffix(got, "exit-code=2\n") {
		t.Errorf("GITHUB_OUTPUT %q", got)
	}
}

func TestRunRefuses(t *testing.T) {
	for input, text := range map[string]string{
		"COMMAND=prune": "the input command is not one of", "COMMAND=": "the input command is not one of", "COMMAND=$(touch pwned)": "the input command is not one of",
		"RECURSIVE=yes": "the input recursive is neither true nor false", "SARIF=": "the input sarif is neither true nor false", "COMMENT=yes": "the input comment is neither true nor false",
		"COMMENT=true": "the input comment is for the command plan",
	} {
		r := newRunner(t)
		inputs(r)
		name, value, _ := strings.Cut(input, "=")
		r.env[name] = value
		r.program("helmsrc", "")
		r.holds(r.run("run.sh", 2), "::error title=helmsrc::"+text)
		if r.read("helmsrc.args") != "" {
			t.Errorf("%s: helmsrc was run", input)
		}
	}
}

// TestSteps has shellcheck look at the scripts in the actions, which actionlint does not read.
func TestSteps(t *testing.T) {
	for _, file := range []string{"../../action.yml", "../../actions/setup/action.yml"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var action struct {
			Runs struct {
				Steps []struct{ Run, Shell string }
			}
		}
		if err := yaml.Unmarshal(b, &action); err != nil {
			t.Fatal(err)
		}
		scripts := 0
		for _, step := range action.Runs.Steps {
			if step.Run == "" {
				continue
			}
			scripts++
			check := exec.CommandContext(t.Context(), "shellcheck", "--shell="+step.Shell, "-")
			check.Stdin = strings.NewReader(step.Run + "\n")
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s: %s\n%s%v", file, step.Run, out, err)
			}
		}
		if scripts == 0 {
			t.Errorf("%s runs no script", file)
		}
	}
}
