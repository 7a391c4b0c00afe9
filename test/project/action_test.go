package project

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// action holds the parts of an action.yml that are tested.
type action struct {
	Inputs map[string]struct {
		Description, Default string
	}
	Outputs map[string]struct{ Description, Value string }
	Runs    struct{ Steps []map[string]any }
}

func readAction(t *testing.T, file string) *action {
	t.Helper()
	var a action
	readYAML(t, file, &a)
	return &a
}

func readYAML(t *testing.T, file string, v any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

var (
	tableRow   = regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (.*?) ?\\|(?: (.*) \\|)?$")
	outputRow  = regexp.MustCompile("(?m)^\\| ((?:`[a-z-]+`(?:, )?)+) \\|")
	expression = regexp.MustCompile(`\$\{\{`)
	// workflowBlock matches an example in a page.
	workflowBlock = regexp.MustCompile("(?ms)^ *```ya?ml\n(.*?)^ *```$")
	anAction      = regexp.MustCompile(`^(\./.*|[\w.-]+/[\w./-]+@[0-9a-f]{40})$`)
)

// TestActionInputs compares the tables of docs/guides/ci.md with the inputs and outputs of the actions.
func TestActionInputs(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("docs", "guides", "ci.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"action.yml", "actions/setup/action.yml"} {
		a := readAction(t, file)
		_, section, _ := strings.Cut(string(b), "<!-- inputs of "+file+" -->")
		section, _, _ = strings.Cut(section, "<!-- end -->")
		inputs, outputs, _ := strings.Cut(section, "| output |")
		documented := map[string]string{}
		for _, row := range tableRow.FindAllStringSubmatch(inputs, -1) {
			documented[row[1]] = strings.Trim(row[2], "`")
			text := strings.ReplaceAll(strings.ToLower(a.Inputs[row[1]].Description), ". without", "; without")
			text, _, _ = strings.Cut(text, ".")
			if plain := strings.ToLower(strings.ReplaceAll(row[3], "`", "")); !strings.HasPrefix(plain, strings.TrimSuffix(text, ".")) {
				t.Errorf("%s: input %s is said to be %q and %q", file, row[1], a.Inputs[row[1]].Description, row[3])
			}
		}
		for name, input := range a.Inputs {
			want := strings.Replace(input.Default, "${{ github.token }}", "the job's", 1)
			if got, ok := documented[name]; !ok || got != want {
				t.Errorf("%s: the default of input %s is %q, documented is %q (%v)", file, name, want, got, ok)
			}
			delete(documented, name)
		}
		for name := range documented {
			t.Errorf("%s has no input %s", file, name)
		}
		var names []string
		for _, row := range outputRow.FindAllStringSubmatch(outputs, -1) {
			for _, name := range strings.Split(row[1], ", ") {
				names = append(names, strings.Trim(name, "`"))
			}
		}
		slices.Sort(names)
		if want := slices.Sorted(maps.Keys(a.Outputs)); !slices.Equal(names, want) {
			t.Errorf("%s: documented are the outputs %q, there are %q", file, names, want)
		}
	}
}

// TestActionSafety: input from outside reaches shells through the environment, never through their text, and other actions are
// pinned to a commit.
func TestActionSafety(t *testing.T) {
	t.Parallel()
	checked := map[string]int{}
	check := func(root, file string, text []byte) {
		var all any
		if err := yaml.Unmarshal(text, &all); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, step := range steps(all) {
			checked[root]++
			if run, ok := step["run"].(string); ok && expression.MatchString(run) {
				t.Errorf("%s: an expression becomes part of a script: %s", file, run)
			}
			if uses, ok := step["uses"].(string); ok && root != "examples" && root != "docs" && !anAction.MatchString(uses) {
				t.Errorf("%s: %s is not pinned to a commit", file, uses)
			}
		}
	}
	roots := []string{".github", "action.yml", "actions", "examples", "docs"}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			switch filepath.Ext(file) {
			case ".yml":
				text, err := os.ReadFile(file)
				check(root, file, text)
				return err
			case ".md":
				text, err := os.ReadFile(file)
				for _, block := range workflowBlock.FindAllSubmatch(text, -1) {
					if bytes.Contains(block[1], []byte("run:")) || bytes.Contains(block[1], []byte("uses:")) {
						check(root, file, block[1])
					}
				}
				return err
			}
			return nil
		})
		if err != nil || checked[root] == 0 {
			t.Errorf("%s has %d steps: %v", root, checked[root], err)
		}
	}
	for _, script := range []string{"actions/run.sh", "actions/cache.sh", "actions/comment.sh", "actions/setup/install.sh"} {
		b, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), "\nset -euo pipefail\n") || strings.Contains(string(b), "eval") && !strings.Contains(string(b), "evaluated") {
			t.Errorf("%s does not begin as it should, or evaluates", script)
		}
	}
}

// TestActionCache: the step that decides about the cache gets the origin of a run, and no key contains the number of a run,
// which would make every run save all artifacts again.
func TestActionCache(t *testing.T) {
	t.Parallel()
	used := map[string]int{}
	for _, step := range readAction(t, "action.yml").Runs.Steps {
		uses, _ := step["uses"].(string)
		run, _ := step["run"].(string)
		condition, _ := step["if"].(string)
		name, _, _ := strings.Cut(uses, "@")
		if name == "actions/cache" {
			t.Error("actions/cache restores and saves without asking")
		}
		if strings.HasPrefix(name, "actions/cache/") {
			used[name]++
			with, _ := step["with"].(map[string]any)
			key, _ := with["key"].(string)
			if !strings.Contains(condition, ".outputs.key != ''") || !strings.HasPrefix(key, "${{ steps.c") || strings.Contains(key, "run_") {
				t.Errorf("%s has the condition %q and the key %q", name, condition, key)
			}
		}
		if strings.Contains(run, "cache.sh") {
			used["cache.sh"]++
			env, _ := step["env"].(map[string]any)
			for name, want := range map[string]string{
				"PULL": "${{ github.event.pull_request.number || github.event.issue.pull_request.url || github.event.workflow_run.id }}",
				"HEAD": "${{ github.event.pull_request.head.repo.full_name || github.event.workflow_run.head_repository.full_name }}",
			} {
				if env[name] != want {
					t.Errorf("%s: %s is %v", run, name, env[name])
				}
			}
		}
	}
	if want := map[string]int{"actions/cache/restore": 1, "actions/cache/save": 1, "cache.sh": 2}; !maps.Equal(used, want) {
		t.Errorf("used are %v, want %v", used, want)
	}
}

// steps returns the steps of a workflow or action that run or use something.
func steps(v any) (found []map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		if v["run"] != nil || v["uses"] != nil {
			found = append(found, v)
		}
		for _, inner := range v {
			found = append(found, steps(inner)...)
		}
	case []any:
		for _, inner := range v {
			found = append(found, steps(inner)...)
		}
	}
	return found
}

// TestCIExamples: the workflows in the documentation use existing inputs and flags.
func TestCIExamples(t *testing.T) {
	t.Parallel()
	actions := map[string]*action{"helmsrc/helmsrc": readAction(t, "action.yml"), "helmsrc/helmsrc/actions/setup": readAction(t, "actions/setup/action.yml")}
	used := 0
	for _, file := range []string{"examples/ci/github.yml", "examples/ci/update.yml", "examples/shards/github.yml", ".github/workflows/action.yml"} {
		var workflow any
		readYAML(t, file, &workflow)
		for _, step := range steps(workflow) {
			uses, _ := step["uses"].(string)
			name, _, _ := strings.Cut(strings.Replace(uses, "./", "helmsrc/helmsrc/", 1), "@")
			a := actions[strings.TrimSuffix(name, "/")]
			if a == nil {
				continue
			}
			used++
			with, _ := step["with"].(map[string]any)
			for input := range with {
				if _, ok := a.Inputs[input]; !ok {
					t.Errorf("%s: %s has no input %s", file, uses, input)
				}
			}
		}
	}
	if used < 4 {
		t.Errorf("the examples use the actions %d times", used)
	}
	var gitlab map[string]struct {
		Script       []string
		BeforeScript []string `json:"before_script"`
		Extends      string
	}
	readYAML(t, "examples/ci/gitlab-ci.yml", &gitlab)
	for _, job := range []string{"validate", "fetch"} {
		if j := gitlab[job]; len(j.Script) == 0 || len(gitlab[j.Extends].BeforeScript) == 0 {
			t.Errorf("examples/ci/gitlab-ci.yml: job %s is %+v", job, j)
		}
	}
}
