package action

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// pulls is a server with the comments of pull request 7, at the place where GitHub has them.
type pulls struct {
	comments []comment
	status   int // of what writes; 0 is success
	user     string
	requests []string
}

type comment struct {
	ID   int               `json:"id"`
	Body string            `json:"body"`
	User map[string]string `json:"user"`
}

func (p *pulls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.requests = append(p.requests, r.Method+" "+r.URL.RequestURI())
	if r.Header.Get("Authorization") != "Bearer t0ken" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var sent comment
	if r.Method != http.MethodGet {
		if p.status != 0 {
			w.WriteHeader(p.status)
			return
		}
		b, _ := io.ReadAll(r.Body)
		if json.Unmarshal(b, &sent) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
	}
	const list = "/repos/owner/charts/issues/7/comments"
	switch {
	case r.URL.Path == "/user" && p.user != "":
		fmt.Fprintf(w, `{"login": %q}`, p.user)
	case r.URL.Path == list && r.Method == http.MethodGet:
		var page int
		fmt.Sscan(r.URL.Query().Get("page"), &page)
		from := min((page-1)*100, len(p.comments))
		_ = json.NewEncoder(w).Encode(append([]comment{}, p.comments[from:min(from+100, len(p.comments))]...))
	case r.URL.Path == list:
		p.add("github-actions[bot]", sent.Body)
	case strings.HasPrefix(r.URL.Path, "/repos/owner/charts/issues/comments/") && r.Method == http.MethodPatch:
		var id int
		fmt.Sscan(filepath.Base(r.URL.Path), &id)
		p.comments[id].Body = sent.Body
	default:
		w.WriteHeader(http.StatusForbidden)
	}
}

func (p *pulls) add(user, body string) {
	p.comments = append(p.comments, comment{len(p.comments), body, map[string]string{"login": user}})
}

func commenting(t *testing.T) (*runner, *pulls) {
	t.Helper()
	r := newRunner(t)
	for _, tool := range []string{"jq", "tail"} {
		path, err := exec.LookPath(tool)
		r.check(err)
		r.check(os.Symlink(path, filepath.Join(r.dir, "bin", tool)))
	}
	p := &pulls{}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	r.check(os.WriteFile(r.dir+"/plan.md", []byte("1 to \"install\"\n$(touch pwned)\n"), 0o600))
	for k, v := range map[string]string{
		"FILE": r.dir + "/plan.md", "NAME": "helmsrc-plan", "PULL": "7", "GH_TOKEN": "t0ken", "GITHUB_API_URL": server.URL, "GITHUB_REPOSITORY": "owner/charts",
	} {
		r.env[k] = v
	}
	return r, p
}

// TestComment writes one comment, and changes it from then on: its own, on whatever page it is, and no one else's.
func TestComment(t *testing.T) {
	r, p := commenting(t)
	for range 120 {
		p.add("stranger", "<!-- helmsrc helmsrc-plan -->\nmine")
	}
	r.run("comment.sh", 0)
	if n := len(p.comments); n != 121 || p.comments[120].Body != "<!-- helmsrc helmsrc-plan -->\n1 to \"install\"\n$(touch pwned)\n" {
		t.Fatalf("%d comments, the last is %q", n, p.comments[n-1].Body)
	}
	r.check(os.WriteFile(r.dir+"/plan.md", []byte("nothing\n"), 0o600))
	r.run("comment.sh", 0)
	if n := len(p.comments); n != 121 || p.comments[120].Body != "<!-- helmsrc helmsrc-plan -->\nnothing\n" || !strings.HasSuffix(p.comments[0].Body, "mine") {
		t.Errorf("%d comments, the last is %q", n, p.comments[n-1].Body)
	}
	// Another job has a comment of its own.
	r.env["NAME"] = "staging"
	r.run("comment.sh", 0)
	if n := len(p.comments); n != 122 {
		t.Errorf("%d comments", n)
	}
}

// TestCommentUser finds the comment of a person whose token it is.
func TestCommentUser(t *testing.T) {
	r, p := commenting(t)
	p.user = "robot"
	p.add("github-actions[bot]", "<!-- helmsrc helmsrc-plan -->\nof the job")
	p.add("robot", "<!-- helmsrc helmsrc-plan -->\nof the robot")
	r.run("comment.sh", 0)
	if len(p.comments) != 2 || !strings.Contains(p.comments[1].Body, "install") {
		t.Errorf("%+v", p.comments)
	}
}

// TestCommentRefused only warns: the plan is in the summary.
func TestCommentRefused(t *testing.T) {
	r, p := commenting(t)
	p.status = http.StatusForbidden
	r.holds(r.run("comment.sh", 0), "::warning title=helmsrc::the comment cannot be written:", "403", "pull-requests: write")
	r.env["GH_TOKEN"] = "wrong"
	r.holds(r.run("comment.sh", 0), "::warning title=helmsrc::the comments of the pull request cannot be read:", "401")
	for name, value := range map[string]string{"GH_TOKEN": "", "PULL": "7; touch pwned", "NAME": "-->$(touch pwned)"} {
		r, p := commenting(t)
		r.env[name] = value
		r.holds(r.run("comment.sh", 0), "::warning title=helmsrc::")
		if len(p.requests) > 0 {
			t.Errorf("%s=%s: %q", name, value, p.requests)
		}
	}
	r.env["PULL"] = ""
	r.holds(r.run("comment.sh", 0), "::notice title=helmsrc::there is no pull request")
}

// TestPlanArguments: the plan goes to a file that the next step reads.
func TestPlanArguments(t *testing.T) {
	r := newRunner(t)
	inputs(r)
	r.env["COMMAND"], r.env["COMMENT"], r.env["ARGS"] = "plan", "true", "--against=HEAD~1"
	r.program("helmsrc", `for a; do case $a in --report=markdown=*) echo plan >"${a#--report=markdown=}"; esac; done; exit 4`)
	r.run("run.sh", 4)
	if got, want := r.read("helmsrc.args"), "plan\n--recursive\n--filename=.\n--report=markdown="+r.dir+"/temp/helmsrc-comment.md\n--against=HEAD~1\n--\n"; got != want {
		t.Errorf("arguments\n%s\nwant\n%s", got, want)
	}
	r.holds(r.read("output"), "exit-code=4\n")
	if got := r.read("temp/helmsrc-comment.md"); got != "plan\n" {
		t.Errorf("comment %q", got)
	}
}

// TestGitLabPlan runs the job of the example for GitLab: a note, which the next run changes.
func TestGitLabPlan(t *testing.T) {
	b, err := os.ReadFile("../../examples/ci/gitlab-ci.yml")
	if err != nil {
		t.Fatal(err)
	}
	var pipeline map[string]struct{ Script []string }
	if err := yaml.Unmarshal(b, &pipeline); err != nil {
		t.Fatal(err)
	}
	var notes []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const list = "/projects/1/merge_requests/7/notes"
		switch {
		case r.Header.Get("PRIVATE-TOKEN") != "t0ken":
			w.WriteHeader(http.StatusUnauthorized)
		case r.Method == http.MethodGet && r.URL.Path == "/user":
			_, _ = io.WriteString(w, `{"id": 41}`)
		case r.Method == http.MethodGet && r.URL.Path == list:
			var all []map[string]any
			for i, body := range notes {
				all = append(all, map[string]any{"id": i, "body": body, "author": map[string]any{"id": 40 + i}})
			}
			_ = json.NewEncoder(w).Encode(all)
		case r.Method == http.MethodPost && r.URL.Path == list:
			notes = append(notes, r.FormValue("body"))
		case r.Method == http.MethodPut && r.URL.Path == list+"/1":
			notes[1] = r.FormValue("body")
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	notes = append(notes, "<!-- helmsrc plan -->\nof somebody else")
	r := newRunner(t)
	path, err := exec.LookPath("jq")
	r.check(err)
	r.check(os.Symlink(path, r.dir+"/bin/jq"))
	for _, text := range []string{"first", "second"} {
		r.program("helmsrc", `printf '<!-- helmsrc plan -->\n`+text+`\n' >plan.md; exit 1`)
		cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -eo pipefail\n"+strings.Join(pipeline["plan"].Script, "\n"))
		cmd.Dir = r.dir + "/work"
		for k, v := range r.env {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		cmd.Env = append(cmd.Env, "MANIFESTS=clusters", "CI_API_V4_URL="+server.URL, "CI_PROJECT_ID=1", "CI_MERGE_REQUEST_IID=7",
			"CI_MERGE_REQUEST_DIFF_BASE_SHA=abc", "PLAN_TOKEN=t0ken")
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 1 || len(notes) != 2 || !strings.Contains(notes[1], text) {
			t.Fatalf("exit code %d, notes %q\n%s", cmd.ProcessState.ExitCode(), notes, out)
		}
	}
	r.holds(r.read("helmsrc.args"), "--against\nabc\n")
}
