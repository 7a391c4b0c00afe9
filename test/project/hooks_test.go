package project

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// hook is a hook of .pre-commit-hooks.yaml.
type hook struct {
	ID, Name, Description, Entry, Language, Files string
	Args                                          []string
	RequireSerial                                 bool   `json:"require_serial"`
	MinimumVersion                                string `json:"minimum_pre_commit_version"`
}

var hookLanguages = map[string]string{"": "golang", "-docker": "docker_image", "-system": "system"}

// TestHooks compares the hooks with each other: those of one command differ only in the installation of the program. .ci/hooks
// runs them, except those that need a container runtime.
func TestHooks(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(".pre-commit-hooks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var hooks []hook
	if err := yaml.UnmarshalStrict(b, &hooks); err != nil {
		t.Fatal(err)
	}
	found := map[string]hook{}
	for _, h := range hooks {
		found[h.ID] = h
	}
	if len(found) != len(hooks) || len(hooks) != 2*len(hookLanguages) {
		t.Errorf("%d hooks with %d names", len(hooks), len(found))
	}
	for _, command := range []string{"validate", "fetch"} {
		plain := found["helmsrc-"+command]
		if !strings.HasPrefix(plain.Entry, "helmsrc "+command+" --lookup-dir .") || !plain.RequireSerial || plain.Files != `\.(ya?ml|json)$` || plain.Args[len(plain.Args)-1] != "--" || plain.MinimumVersion != "3.0.0" {
			t.Errorf("hook %+v", plain)
		}
		for suffix, language := range hookLanguages {
			h := found["helmsrc-"+command+suffix]
			if h.Language != language {
				t.Errorf("helmsrc-%s%s is of language %q", command, suffix, h.Language)
			}
			h.ID, h.Language = plain.ID, plain.Language
			if command == "fetch" && suffix == "-docker" {
				// In a container only the repository could hold a cache, and a contributor could put one there.
				h.Args = slices.DeleteFunc(slices.Clone(h.Args), func(arg string) bool { return arg == "--no-cache" })
				if len(h.Args) != len(plain.Args) {
					t.Errorf("helmsrc-fetch-docker has the arguments %q: it has no cache, and says so", h.Args)
				}
			}
			h.Entry = regexp.MustCompile(`^ghcr\.io/helmsrc/helmsrc:(?:VERSION|v\d+\.\d+\.\d+) `).ReplaceAllString(h.Entry, "helmsrc ")
			if h.Entry != plain.Entry || strings.Join(h.Args, " ") != strings.Join(plain.Args, " ") || h.Files != plain.Files || h.Description != plain.Description || h.Name != plain.Name || h.RequireSerial != plain.RequireSerial || h.MinimumVersion != plain.MinimumVersion {
				t.Errorf("helmsrc-%s%s differs from helmsrc-%s: %+v", command, suffix, command, h)
			}
		}
	}
}

// TestHooksInstall: the golang hooks install only the program, because pre-commit builds all commands of the module.
func TestHooksInstall(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-f", `{{if eq .Name "main"}}{{.ImportPath}}{{end}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(string(out)); len(got) != 1 || got[0] != "github.com/helmsrc/helmsrc" {
		t.Errorf("go install ./... would install %q", got)
	}
}
