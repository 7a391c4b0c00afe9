package program

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/helmsrc/helmsrc/cmd"
)

// repositoryFixture is a script whose only directory is a repository, with the directories of its clusters.
type repositoryFixture struct {
	script, root string
	clusters     []string
}

var repositoryFixtures = []repositoryFixture{
	{"empty", "homelab", []string{"clusters/home"}},
	{"unbuilt", "homelab", []string{"clusters/home"}},
	{"included", "homelab", []string{"clusters/home"}},
	{"pathless", "app", []string{"deploy"}},
	{"unreached", "homelab", []string{"kubernetes/flux/cluster"}},
	{"self", "homelab", []string{"kubernetes/flux/cluster"}},
	{"patched", "homelab", []string{"clusters/home"}},
	{"mixed", "fleet", []string{"clusters/east", "clusters/west"}},
	{"mixed_plain", "fleet", []string{"clusters/east", "clusters/west"}},
	{"scattered", "homelab", []string{"clusters/home"}},
	{"ignored", "homelab", []string{"clusters/home"}},
	{"unknown", "homelab", []string{"clusters/home"}},
	{"spoiled", "homelab", []string{"clusters/home"}},
	{"renamed", "fleet", []string{"clusters/home"}},
	{"overlays", "app", []string{"deploy/overlays/staging", "deploy/overlays/production"}},
	{"instance", "homelab", []string{"kubernetes"}},
	{"instance_values", "homelab", []string{"kubernetes"}},
	{"ref", "fleet", []string{"clusters/home"}},
	{"applied", "home", []string{"c"}},
	{"ignores", "fleet", []string{"clusters/a", "clusters/b"}},
	{"instance_elsewhere", "infra", []string{"kubernetes"}},
	{"root", "fleet", []string{"clusters/a", "clusters/b"}},
}

// TestRepositories compares runs over the same repository: the runs over its clusters together have the findings of the run
// over all of it, and a run over a changed file has those of the file in that run.
func TestRepositories(t *testing.T) {
	for _, f := range repositoryFixtures {
		t.Run(f.script, func(t *testing.T) {
			f.unpack(t)
			whole := judge(t, "-R", "-f", ".")
			var clusters []string
			for _, c := range f.clusters {
				clusters = append(clusters, judge(t, "-R", "-f", c)...)
			}
			if slices.Sort(clusters); !slices.Equal(slices.Compact(clusters), whole) {
				t.Errorf("the clusters have\n%s\nall of it has\n%s", strings.Join(clusters, "\n"), strings.Join(whole, "\n"))
			}
			// A cycle is one finding, reported for the first of its members that a run validates.
			ofCycle := func(line string) bool {
				_, about, found := strings.Cut(line, " HS126 ")
				_, message, _ := strings.Cut(about, ": ")
				return found && slices.ContainsFunc(whole, func(w string) bool { return strings.Contains(w, " HS126 ") && strings.HasSuffix(w, ": "+message) })
			}
			stdout, _ := validate(t, "-R", "-f", ".", "--unreached")
			unreached := strings.Fields(stdout)
			for _, name := range manifestsHere(t) {
				if slices.Contains(unreached, name) {
					continue
				}
				of := func(found []string) []string {
					return slices.DeleteFunc(slices.Clone(found), func(line string) bool { return !strings.HasPrefix(line, name+":") || ofCycle(line) })
				}
				if changed := of(judge(t, "--lookup-dir", ".", name)); !slices.Equal(changed, of(whole)) {
					t.Errorf("%s: changed it has\n%s\nall of it has\n%s", name, strings.Join(changed, "\n"), strings.Join(of(whole), "\n"))
				}
			}
		})
	}
}

// unpack writes the repository, and makes its directory the current one.
func (f repositoryFixture) unpack(t *testing.T) {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "script", "validate_repository_"+f.script+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), f.root)
	if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range archive.Files {
		name := filepath.Join(filepath.Dir(dir), filepath.FromSlash(file.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, file.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

// validate runs the command in this process.
func validate(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	cmd.Run(t.Context(), &cmd.Env{
		Args: append([]string{"validate"}, args...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &log,
		Terminal: func() (int, int, bool) { return 0, 0, false },
		Getenv:   func(string) string { return "" },
		Now:      func() time.Time { return time.Unix(0, 0) },
		Program:  "helmsrc",
	})
	return out.String(), log.String()
}

var inClusters = regexp.MustCompile(` \(in [^)]*\)$`)

// judge returns the findings of a run, without duplicates and without the names of clusters.
func judge(t *testing.T, args ...string) []string {
	t.Helper()
	var list []string
	for _, f := range findingsOf(t, args...) {
		list = append(list, fmt.Sprintf("%s:%d:%d: %s %s %s %s/%s: %s", filepath.ToSlash(f.Position.File), f.Position.Line, f.Position.Column,
			f.Severity, f.Code, f.Kind, f.Namespace, f.Name, f.Message))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// reported is a finding in a report.
type reported struct {
	Code, Severity, Kind, Namespace, Name, Message string
	Position                                       struct {
		File         string
		Line, Column int
	} `json:"place"`
}

// same reports whether two findings are equal, except for their position in the file.
func (f reported) same(g reported) bool {
	g.Position.Line, g.Position.Column = f.Position.Line, f.Position.Column
	return f == g
}

// findingsOf returns the findings of a run, without the names of clusters.
func findingsOf(t *testing.T, args ...string) []reported {
	t.Helper()
	stdout, stderr := validate(t, append(args, "--report", "json=-")...)
	var report struct{ Findings []reported }
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%q: %v: %s", args, err, stderr)
	}
	for i, f := range report.Findings {
		report.Findings[i].Message = inClusters.ReplaceAllString(f.Message, "")
	}
	return report.Findings
}

// manifestsHere lists the manifests below the current directory.
func manifestsHere(t *testing.T) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
