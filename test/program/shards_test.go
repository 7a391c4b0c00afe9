package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// sharded returns a stage with a repository of manifests, and the artifacts of a run over all of it.
func sharded(t *testing.T) *stage {
	s := newStage(t, "podinfo 6.5.0\npodinfo 6.6.0\n")
	var b strings.Builder
	b.WriteString("apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: podinfo, namespace: apps}\nspec: {interval: 5m, url: \"http://repo.test\"}\n")
	for i := range 12 {
		fmt.Fprintf(&b, "---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: app-%d, namespace: apps}\nspec: {interval: 5m, chart: {spec: {chart: podinfo, version: 6.x, sourceRef: {kind: HelmRepository, name: podinfo}}}}\n", i)
	}
	s.write("clusters/production/all.yaml", b.String())
	s.run("fetch", "-R", "-f", "clusters/production", "-d", "one")
	return s
}

func readExample(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("examples", "shards", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

// shell runs the commands of a job, as a runner does.
func (s *stage) shell(script string, env ...string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "sh", "-ec", script)
	cmd.Dir, cmd.Env = s.dir, append(s.command().Env, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

type exampleJob struct {
	Spec struct {
		CompletionMode string
		Completions    int
		Template       struct {
			Spec struct {
				Containers []struct {
					Image string
					Args  []string
				}
			}
		}
	}
}

// TestIndexedJob runs the containers of the example for Kubernetes, with the variable of each Pod.
func TestIndexedJob(t *testing.T) {
	t.Parallel()
	s := sharded(t)
	var job, merge exampleJob
	readExample(t, "job.yaml", &job)
	readExample(t, "merge.yaml", &merge)
	if job.Spec.CompletionMode != "Indexed" || job.Spec.Completions != 4 {
		t.Fatalf("the Job is %+v", job.Spec)
	}
	run := func(j *exampleJob, index string) {
		t.Helper()
		var args []string
		for _, arg := range j.Spec.Template.Spec.Containers[0].Args {
			arg = strings.ReplaceAll(arg, "$(JOB_COMPLETION_INDEX)", index)
			arg = strings.Replace(arg, "/manifests/clusters", filepath.Join(s.dir, "clusters"), 1)
			args = append(args, strings.Replace(arg, "/shards/", filepath.Join(s.dir, "shards")+"/", 1))
		}
		cmd := s.command(args...)
		if index != "" {
			cmd.Env = append(cmd.Env, "JOB_COMPLETION_INDEX="+index)
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	s.run("fetch", "-R", "-f", filepath.Join(s.dir, "clusters"), "-d", "absolute")
	s.world.Servers["repo"].Log.Drain()
	for i := range job.Spec.Completions {
		run(&job, strconv.Itoa(i))
	}
	archives := 0
	for _, r := range s.world.Servers["repo"].Log.Drain() {
		if strings.Contains(r.String(), ".tgz") {
			archives++
		}
	}
	if archives != 1 {
		t.Errorf("the archive was downloaded %d times, and the Pods share a cache", archives)
	}
	run(&merge, "")
	s.sameFiles("shards/whole", "absolute")
}

// TestShardsOnGitHub runs the steps of the example for GitHub, once for each job of its matrix.
func TestShardsOnGitHub(t *testing.T) {
	t.Parallel()
	s := sharded(t)
	var workflow struct {
		Jobs map[string]struct {
			Strategy struct{ Matrix struct{ Shard []int } }
			Steps    []struct {
				Run  string
				Env  map[string]string
				With map[string]any
			}
		}
	}
	readExample(t, "github.yml", &workflow)
	shards := workflow.Jobs["fetch"].Strategy.Matrix.Shard
	for i := range shards {
		fill := strings.NewReplacer("${{ strategy.job-index }}", strconv.Itoa(i), "${{ strategy.job-total }}", strconv.Itoa(len(shards)))
		for _, step := range workflow.Jobs["fetch"].Steps {
			var env []string
			for name, value := range step.Env {
				env = append(env, name+"="+fill.Replace(value))
			}
			if step.Run != "" {
				s.shell(step.Run, env...)
			}
			if name, ok := step.With["name"].(string); ok { // it is uploaded, and downloaded again
				if step.With["include-hidden-files"] != true {
					t.Error("the hidden files are not uploaded")
				}
				if err := os.MkdirAll(filepath.Join(s.dir, "shards"), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(filepath.Join(s.dir, step.With["path"].(string)), filepath.Join(s.dir, "shards", fill.Replace(name))); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, step := range workflow.Jobs["merge"].Steps {
		if step.Run != "" {
			s.shell(step.Run)
		}
	}
	s.sameFiles("artifacts", "one")
}

// TestShardsOnGitLab runs the scripts of the example for GitLab, once for each of its parallel jobs.
func TestShardsOnGitLab(t *testing.T) {
	t.Parallel()
	s := sharded(t)
	var pipeline map[string]struct {
		Parallel int
		Script   []string
	}
	readExample(t, "gitlab-ci.yml", &pipeline)
	total := pipeline["fetch"].Parallel
	for i := 1; i <= total; i++ {
		s.shell(strings.Join(pipeline["fetch"].Script, "\n"), "MANIFESTS=clusters/production", fmt.Sprintf("CI_NODE_INDEX=%d", i), fmt.Sprintf("CI_NODE_TOTAL=%d", total))
	}
	s.shell(strings.Join(pipeline["merge"].Script, "\n"))
	s.sameFiles("artifacts", "one")
}
