package action

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/xeipuuv/gojsonschema"
)

// notes are those of merge request 7 in GitLab's API.
type notes struct{ bodies []string }

func (n *notes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const list = "/projects/1217/merge_requests/7/notes"
	switch {
	case r.Header.Get("PRIVATE-TOKEN") != "t0ken":
		w.WriteHeader(http.StatusUnauthorized)
	case r.Method == http.MethodGet && r.URL.Path == "/user":
		_, _ = io.WriteString(w, `{"id": 41}`)
	case r.Method == http.MethodGet && r.URL.Path == list:
		all := []map[string]any{}
		for i, body := range n.bodies {
			all = append(all, map[string]any{"id": i, "body": body, "author": map[string]any{"id": 41}})
		}
		_ = json.NewEncoder(w).Encode(all)
	case r.Method == http.MethodPost && r.URL.Path == list:
		n.bodies = append(n.bodies, r.FormValue("body"))
	case r.Method == http.MethodPut && r.URL.Path == list+"/0":
		n.bodies[0] = r.FormValue("body")
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// TestRunnerGitLab runs the jobs of examples/ci/gitlab-ci.yml, whose file is judged by GitLab's schema. Their reports are what
// GitLab reads, and the note of the plan is changed by the second run.
func TestRunnerGitLab(t *testing.T) {
	s := newStage(t)
	n := &notes{}
	api := httptest.NewServer(n)
	defer api.Close()
	s.program("apt-get", "")
	s.git("remote", "set-url", "origin", "git@gitlab.example.org:owner/charts.git")
	pipeline := strings.NewReplacer("https://github.com/helmsrc/helmsrc/releases", s.env["RELEASES_URL"], "/usr/local/bin", s.dir+"/bin", "  image: debian:stable-slim\n", "").Replace(example(t, "ci/gitlab-ci.yml"))
	s.write(".gitlab-ci.yml", pipeline)
	s.write(".gitignore", ".gitlab-ci-local\n")
	s.commit("a pipeline")
	job := func(name string, code int) string {
		t.Helper()
		args := []string{"--shell-isolation", "--no-artifacts-to-source", name}
		for _, v := range []string{
			"CI_API_V4_URL=" + api.URL, "CI_PROJECT_ID=1217", "CI_MERGE_REQUEST_IID=7", "PLAN_TOKEN=t0ken",
			"CI_MERGE_REQUEST_DIFF_BASE_SHA=" + strings.TrimSpace(s.git("rev-parse", "HEAD~2")),
		} {
			args = append(args, "--variable", v)
		}
		out, err := s.command("gitlab-ci-local", args...).CombinedOutput()
		text := regexp.MustCompile(`\x1b\[[0-9;]*[mK]`).ReplaceAllString(string(out), "")
		if failed := strings.Contains(text, "FAIL "); failed != (code != 0) {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		return text
	}
	left := func(name string) []byte {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(s.dir, "work/.gitlab-ci-local/builds", name))
		s.check(err)
		return b
	}
	s.holds(job("validate", 0), "2 valid, 0 invalid")
	if findings := codeQuality(t, left("validate/gl-code-quality-report.json")); len(findings) != 0 {
		t.Errorf("findings %+v", findings)
	}
	s.holds(job("fetch", 0), "podinfo   6.9.2 ")
	for range 2 {
		s.holds(job("plan", 0), "1 to upgrade")
		if len(n.bodies) != 1 || !strings.Contains(n.bodies[0], "6.8.0") {
			t.Errorf("notes %q", n.bodies)
		}
	}

	s.write("clusters/production/podinfo.yaml", strings.Replace(production, "values:", "valeus:", 1))
	s.commit("a mistake")
	job("validate", 1)
	findings := codeQuality(t, left("validate/gl-code-quality-report.json"))
	if len(findings) == 0 || findings[0].Location.Path != "clusters/production/podinfo.yaml" {
		t.Errorf("findings %+v", findings)
	}
	junit := left("validate/junit.xml")
	var suites struct {
		Failures int `xml:"failures,attr"`
	}
	if err := xml.Unmarshal(junit, &suites); err != nil || suites.Failures == 0 {
		t.Errorf("%+v, %v", suites, err)
	}
	lint := exec.CommandContext(t.Context(), "xmllint", "--noout", "--nonet", "--schema", schemas+"junit.xsd", "-")
	lint.Stdin = bytes.NewReader(junit)
	if out, err := lint.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// schemas is where the schemas are that the reports' own tests use.
const schemas = "../../internal/report/testdata/"

// finding is one of a code quality report.
type finding struct {
	Location struct {
		Path string `json:"path"`
	} `json:"location"`
}

// codeQuality reads a report that is as GitLab demands.
func codeQuality(t *testing.T, report []byte) []finding {
	t.Helper()
	schema, err := os.ReadFile(schemas + "gitlab-schema.json")
	if err != nil {
		t.Fatal(err)
	}
	result, err := gojsonschema.Validate(gojsonschema.NewBytesLoader(schema), gojsonschema.NewBytesLoader(report))
	if err != nil {
		t.Fatalf("%v in %s", err, report)
	}
	if !result.Valid() {
		t.Errorf("%v in %s", result.Errors(), report)
	}
	var findings []finding
	if err := json.Unmarshal(report, &findings); err != nil {
		t.Fatal(err)
	}
	return findings
}
