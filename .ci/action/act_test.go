package action

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// stage is a machine on which act runs workflows, with everything that these reach: a release with the program of this
// repository, a Helm repository, GitHub's API with pull request 7, and a remote to push to.
type stage struct {
	*runner
	rel    *release
	api    *github
	charts string // the URL of the Helm repository
	tools  string // what act keeps: the cache, and the directories of each job
	event  map[string]any
}

// github is GitHub's API, for comments and code scanning.
type github struct {
	pulls
	sarif []string
}

func (g *github) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/repos/owner/charts/code-scanning/sarifs" {
		g.pulls.ServeHTTP(w, r)
		return
	}
	var sent struct{ Sarif []byte }
	if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(sent.Sarif))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var text bytes.Buffer
	_, _ = text.ReadFrom(unzipped)
	g.sarif = append(g.sarif, text.String())
}

const production = `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: podinfo, namespace: apps}
spec: {interval: 5m, url: "CHARTS"}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: podinfo, namespace: apps}
spec:
  interval: 5m
  chart: {spec: {chart: podinfo, version: 6.8.0, sourceRef: {kind: HelmRepository, name: podinfo}}}
  values: {replicaCount: 1}
`

// newStage has a repository of two commits, whose second is a newer chart.
func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{runner: newRunner(t), api: &github{}, event: map[string]any{}}
	s.rel = newRelease(t, s.runner)
	s.rel.release(t, "0.1.0", os.Getenv("PROGRAM"))
	api, charts := httptest.NewServer(s.api), httptest.NewServer(helmRepository(t))
	t.Cleanup(api.Close)
	t.Cleanup(charts.Close)
	s.charts, s.tools = charts.URL, filepath.Join(s.dir, "act")
	s.program("gh", "echo \"$PWD: gh $*\" >>"+s.dir+"/gh.log")
	s.env = map[string]string{
		"PATH": s.dir + "/bin:" + os.Getenv("PATH"), "HOME": s.dir, "GIT_CONFIG_NOSYSTEM": "1",
		"CURL_CA_BUNDLE": s.env["CURL_CA_BUNDLE"], "RELEASES_URL": s.env["RELEASES_URL"],
		"NODE_PATH": os.Getenv("TOOLKIT"), "GITHUB_API_URL": api.URL, "GITHUB_REPOSITORY": "owner/charts",
	}
	s.git("init", "--quiet", "--initial-branch=main")
	s.git("config", "user.name", "a person")
	s.git("config", "user.email", "person@example.org")
	s.git("init", "--quiet", "--bare", s.dir+"/remote.git")
	s.git("remote", "add", "origin", s.dir+"/remote.git")
	s.write("clusters/production/podinfo.yaml", strings.ReplaceAll(production, "CHARTS", s.charts))
	s.commit("podinfo 6.8.0")
	s.write("clusters/production/podinfo.yaml", strings.NewReplacer("CHARTS", s.charts, "6.8.0", "6.9.2").Replace(production))
	s.commit("podinfo 6.9.2")
	return s
}

// release makes version the newest one, with a program for Linux.
func (rel *release) release(t *testing.T, version, program string) {
	t.Helper()
	b, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	rel.version = "v" + version
	rel.files = map[string][]byte{"helmsrc_" + version + "_linux_amd64.tar.gz": tarball(t, map[string]string{"helmsrc": string(b)})}
	rel.sum()
}

// helmRepository serves the charts of the examples.
func helmRepository(t *testing.T) http.Handler {
	t.Helper()
	index := "apiVersion: v1\nentries:\n  podinfo:\n"
	for _, version := range []string{"6.8.0", "6.9.2"} {
		b, err := os.ReadFile("../../examples/charts/podinfo-" + version + ".tgz")
		if err != nil {
			t.Fatal(err)
		}
		index += fmt.Sprintf("  - {apiVersion: v1, name: podinfo, version: %s, digest: %x, urls: [podinfo-%[1]s.tgz]}\n", version, sha256.Sum256(b))
	}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir("../../examples/charts")))
	mux.HandleFunc("/index.yaml", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(index)) })
	return mux
}

func (s *stage) write(name, text string) {
	s.t.Helper()
	name = filepath.Join(s.dir, "work", name)
	s.check(os.MkdirAll(filepath.Dir(name), 0o755))
	s.check(os.WriteFile(name, []byte(text), 0o600))
}

func (s *stage) commit(message string) {
	s.t.Helper()
	s.git("add", "--all")
	s.git("commit", "--quiet", "--message", message)
}

func (s *stage) git(args ...string) string {
	s.t.Helper()
	cmd := s.command("git", args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (s *stage) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.t.Context(), name, args...)
	cmd.Dir = filepath.Join(s.dir, "work")
	for k, v := range s.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return cmd
}

// uses finds the actions of a workflow and of helmsrc's own.
var uses = regexp.MustCompile(`(?m)\buses: ([\w-]+/[\w-]+)((?:/[\w-]+)*)@(\S+)`)

// standIns are the directories of the actions that a file uses: helmsrc's own is this repository, GitHub's have stand-ins.
func standIns(t *testing.T, text []byte) (args []string) {
	t.Helper()
	for _, m := range uses.FindAllStringSubmatch(string(text), -1) {
		dir := "../.."
		if m[1] != "helmsrc/helmsrc" {
			dir = filepath.Join("github", filepath.Base(m[1]))
		}
		dir, err := filepath.Abs(dir)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "--local-repository=https://github.com/"+m[1]+"@"+m[3]+"="+dir)
	}
	return args
}

// port is one that nothing listens on. Jobs get the number that act was given, so it cannot be 0.
func (s *stage) port() string {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.check(err)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	s.check(l.Close())
	return port
}

// act runs a workflow for an event, and returns the log.
func (s *stage) act(event, workflow string, code int) string {
	s.t.Helper()
	action, err := os.ReadFile("../../action.yml")
	s.check(err)
	text, err := json.Marshal(s.event)
	s.check(err)
	s.check(os.WriteFile(s.dir+"/event.json", text, 0o600))
	file := filepath.Join(s.dir, "workflow.yml")
	s.check(os.WriteFile(file, []byte(workflow), 0o600))
	args := []string{
		event, "--workflows=" + file, "--eventpath=" + s.dir + "/event.json", "--platform=ubuntu-latest=-self-hosted", "--reuse",
		"--action-cache-path=" + s.tools, "--cache-server-path=" + s.dir + "/actcache", "--cache-server-addr=127.0.0.1",
		"--artifact-server-path=" + s.dir + "/artifacts", "--artifact-server-addr=127.0.0.1", "--artifact-server-port=" + s.port(), "--use-gitignore=false", "--secret=GITHUB_TOKEN=t0ken",
	}
	for _, name := range []string{"GITHUB_API_URL", "GITHUB_REPOSITORY"} {
		args = append(args, "--env="+name+"="+s.env[name])
	}
	args = append(args, standIns(s.t, append([]byte(workflow+"\n"), action...))...)
	s.check(os.RemoveAll(s.tools))
	cmd := s.command("act", args...)
	out, err := cmd.CombinedOutput()
	if bytes.Contains(out, []byte("t0ken")) {
		s.t.Errorf("the token is in the log\n%s", out)
	}
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		s.t.Fatalf("%v, want exit code %d\n%s", err, code, out)
	}
	return string(out)
}

func example(t *testing.T, name string) string { return released(t, "../../examples/"+name) }

var version = regexp.MustCompile(`(helmsrc/helmsrc(?:/actions/setup)?@|HELMSRC_RELEASE: )(?:VERSION|v[0-9]\S*)`)

// released is a file that names the release on loopback, where it names a release.
func released(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return version.ReplaceAllString(string(b), "${1}v0.1.0")
}

// TestRunnerCharts runs examples/ci/github.yml: a good change, the cache of its second run, and a mistake.
func TestRunnerCharts(t *testing.T) {
	s := newStage(t)
	workflow := example(t, "ci/github.yml")
	out := s.act("push", workflow, 0)
	s.holds(out, "has the checksum of the release", "podinfo   6.9.2 ", "saved: helmsrc-v1-Linux-fetch-", "Summary - ## helmsrc fetch", "| ✅ ready | HelmChart apps/apps-podinfo | 6.9.2 |")
	if len(s.api.sarif) != 1 || !strings.Contains(s.api.sarif[0], `"executionSuccessful": true`) {
		t.Errorf("code scanning got %q", s.api.sarif)
	}
	again := s.act("push", workflow, 0)
	s.holds(again, "restored: helmsrc-v1-Linux-fetch-")
	if strings.Contains(again, "saved: ") {
		t.Errorf("the cache is saved again\n%s", again)
	}
	s.write("clusters/production/podinfo.yaml", strings.Replace(production, "values:", "valeus:", 1))
	out = s.act("push", workflow, 1)
	s.holds(out, "::error file=clusters/production/podinfo.yaml,line=", "valeus")
	if n := len(s.api.sarif); n != 3 || !strings.Contains(s.api.sarif[n-1], "valeus") {
		t.Errorf("code scanning got %q", s.api.sarif)
	}
}

// page finds the workflows in a page of the documentation, and completes those that are steps alone.
func page(t *testing.T, name string) (workflows []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(released(t, "../../docs/guides/"+name), -1) {
		text := m[1]
		if !uses.MatchString(text) {
			continue
		}
		if strings.HasPrefix(text, " ") {
			text = "steps:\n" + text
		}
		if !strings.Contains(text, "actions/checkout") {
			text = strings.Replace(text, "steps:\n", "steps:\n  - uses: actions/checkout@v4\n", 1)
		}
		if !strings.Contains(text, "jobs:") {
			text = "on: [push, pull_request]\njobs:\n  job:\n    runs-on: ubuntu-latest\n    " + strings.ReplaceAll(text, "\n", "\n    ")
		}
		workflows = append(workflows, text)
	}
	return workflows
}

// TestRunnerGuide runs the workflows of docs/guides/ci.md, which are for pushes, and of strangers.md.
func TestRunnerGuide(t *testing.T) {
	workflows := append(page(t, "ci.md"), page(t, "strangers.md")...)
	if len(workflows) != 4 {
		t.Fatalf("%d workflows", len(workflows))
	}
	for i, texts := range [][]string{
		{"2 valid, 0 invalid", "Summary - ## helmsrc validate"},
		{"podinfo   6.9.2 ", "| apps\n"},
		{"podinfo   6.9.2 "},
		{"2 valid, 0 invalid"},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			s := newStage(t)
			event := "push"
			if strings.Contains(workflows[i], "--untrusted") {
				event = "pull_request"
				s.pull("stranger/charts")
			}
			s.holds(s.act(event, workflows[i], 0), texts...)
		})
	}
}

// pull makes the event that of pull request 7, from a branch of a repository.
func (s *stage) pull(repository string) {
	s.event = map[string]any{"pull_request": map[string]any{"number": 7, "head": map[string]any{"ref": "newer", "repo": map[string]any{"full_name": repository}}}}
}

// TestRunnerPlan runs the workflow of docs/guides/pull-requests.md: one comment, which later runs change, whether the job passes or
// fails. A pull request from a fork has no token that may write, and gets none.
func TestRunnerPlan(t *testing.T) {
	workflows := page(t, "pull-requests.md")
	if len(workflows) != 1 {
		t.Fatalf("%d workflows", len(workflows))
	}
	s := newStage(t)
	s.pull("owner/charts")
	s.holds(s.act("pull_request", workflows[0], 0), "podinfo 6.8.0 -> 6.9.2", "::set-output:: plan-upgrade=1")
	if len(s.api.comments) != 1 || !strings.Contains(s.api.comments[0].Body, "6.8.0") {
		t.Fatalf("comments %+v", s.api.comments)
	}
	s.write("clusters/production/podinfo.yaml", strings.NewReplacer("CHARTS", s.charts, "6.8.0", "9.9.9").Replace(production))
	s.commit("podinfo 9.9.9, which there is not")
	s.holds(s.act("pull_request", workflows[0], 1), "::set-output:: plan-blocked=1")
	if len(s.api.comments) != 1 || !strings.Contains(s.api.comments[0].Body, "9.9.9") {
		t.Errorf("comments %+v", s.api.comments)
	}

	stranger := newStage(t)
	stranger.pull("stranger/charts")
	stranger.api.status = http.StatusForbidden
	stranger.holds(stranger.act("pull_request", workflows[0], 0), "::set-output:: plan-upgrade=1", "the comment cannot be written")
	if len(stranger.api.comments) != 0 {
		t.Errorf("comments %+v", stranger.api.comments)
	}
}

// TestRunnerUpdate runs examples/ci/update.yml: a branch with newer charts is pushed, and a pull request is opened, then edited.
func TestRunnerUpdate(t *testing.T) {
	s := newStage(t)
	s.write("clusters/production/podinfo.yaml", strings.ReplaceAll(production, "CHARTS", s.charts))
	s.commit("podinfo 6.8.0 again")
	s.program("gh", "echo \"gh $1 $2\" >>"+s.dir+"/gh.log\n[[ $2 != edit || -e "+s.dir+"/opened ]]")
	s.act("schedule", example(t, "ci/update.yml"), 0)
	s.holds(s.git("--git-dir="+s.dir+"/remote.git", "show", "charts-update"), "-  chart: {spec: {chart: podinfo, version: 6.8.0,", "+  chart: {spec: {chart: podinfo, version: 6.9.2,")
	s.check(os.WriteFile(s.dir+"/opened", nil, 0o600))
	s.act("schedule", example(t, "ci/update.yml"), 0)
	if got, want := s.read("gh.log"), "gh attestation verify\ngh pr edit\ngh pr create\ngh attestation verify\ngh pr edit\n"; got != want {
		t.Errorf("gh was run as\n%swant\n%s", got, want)
	}
	// Nothing is newer than what is there.
	s.write("clusters/production/podinfo.yaml", strings.NewReplacer("CHARTS", s.charts, "6.8.0", "6.9.2").Replace(production))
	s.commit("podinfo 6.9.2")
	s.act("schedule", example(t, "ci/update.yml"), 0)
	if got := s.read("gh.log"); strings.Count(got, "gh pr") != 3 {
		t.Errorf("gh was run as\n%s", got)
	}
}

// TestRunnerShards runs examples/shards/github.yml: four jobs whose artifacts the fifth joins.
func TestRunnerShards(t *testing.T) {
	s := newStage(t)
	for i := range 8 {
		s.write(fmt.Sprintf("clusters/production/app%d.yaml", i), strings.NewReplacer("CHARTS", s.charts, "namespace: apps", fmt.Sprintf("namespace: app%d", i)).Replace(production))
	}
	s.commit("more")
	// act does not know the index of a job.
	workflow := strings.NewReplacer("${{ strategy.job-index }}", "${{ matrix.shard }}", "${{ strategy.job-total }}", "4").Replace(example(t, "shards/github.yml"))
	out := s.act("push", workflow, 0)
	s.holds(out, "app0/podinfo   podinfo   6.8.0 ", "app7/podinfo   podinfo   6.8.0 ", "apps/podinfo   podinfo   6.9.2 ")
}

// TestRunnerOutputs: a step after the action that failed reads what it says of itself.
func TestRunnerOutputs(t *testing.T) {
	s := newStage(t)
	s.write("clusters/production/podinfo.yaml", strings.NewReplacer("CHARTS", s.charts, "6.8.0", "9.9.9").Replace(production))
	out := s.act("push", `on: push
jobs:
  job:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: helmsrc/helmsrc@v0.1.0
        id: charts
        with: {command: fetch, files: clusters, reports: "junit=junit.xml"}
      - if: ${{ failure() }}
        env: {OUTPUTS: "${{ toJSON(steps.charts.outputs) }}"}
        run: |
          jq -Mc '[."exit-code", .failed, ."failed-objects", .errors, .version]' <<<"$OUTPUTS"
          grep -c '<failure' junit.xml
`, 1)
	s.holds(out, `["1","1","HelmChart apps/apps-podinfo","1","v0.1.0"]`, "::error")
}

// TestRunnerLock: a lock file that fits passes, and one that does not fit any longer fails with what to do.
func TestRunnerLock(t *testing.T) {
	s := newStage(t)
	const workflow = `on: push
jobs:
  job:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: helmsrc/helmsrc@v0.1.0
        with: {command: lock, files: clusters}
`
	if out, err := s.command(os.Getenv("PROGRAM"), "lock", "-R", "-f", "clusters").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.commit("a lock")
	s.act("push", workflow, 0)
	s.write("clusters/production/podinfo.yaml", strings.ReplaceAll(production, "CHARTS", s.charts))
	s.commit("podinfo 6.8.0, without a lock")
	s.holds(s.act("push", workflow, 1), "::set-output:: exit-code=4", "::error")
}
