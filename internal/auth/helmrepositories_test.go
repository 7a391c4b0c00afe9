package auth_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/auth"
)

func TestHelmRepositories(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := write("repositories.yaml", `
apiVersion: ""
repositories:
- name: first
  url: https://charts.example.org/stable/
  username: reader
  password: canary
- name: half
  url: https://half.example.org
  username: reader
- name: tls
  url: https://tls.example.org
  caFile: `+filepath.Join(dir, "nowhere.crt")+`
`)
	broken := write("broken.yaml", "repositories:\n- password: canary\n  url: [")
	write("home/.config/helm/repositories.yaml", "repositories:\n- {name: home, url: 'https://home.example.org', username: u, password: p}\n")

	tests := []struct {
		name, file, url string
		env             map[string]string
		user            string
		found           bool
		problem         string
	}{
		{name: "a slash makes no difference", file: file, url: "https://charts.example.org/stable", user: "reader", found: true},
		{name: "another path is another repository", file: file, url: "https://charts.example.org/other"},
		{name: "a name without a password is no login", file: file, url: "https://half.example.org", found: true},
		{name: "a CA that is not there", file: file, url: "https://tls.example.org", problem: "nowhere.crt"},
		{name: "a file that is not there, but was named", file: filepath.Join(dir, "none"), problem: "none"},
		{name: "an invalid file", file: broken, problem: "not a repositories file"},
		{name: "Helm's variable", env: map[string]string{"HELM_REPOSITORY_CONFIG": file}, url: "https://charts.example.org/stable", user: "reader", found: true},
		{name: "no file at Helm's own place", env: map[string]string{"HELM_CONFIG_HOME": dir + "/empty"}, url: "https://home.example.org"},
		{name: "no home at all", url: "https://home.example.org"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id, source, err := auth.HelmRepositories(t.Context(), auth.AmbientOptions{Getenv: func(k string) string { return tt.env[k] }}, tt.file, tt.url)
			if tt.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tt.problem) || strings.Contains(err.Error(), "canary") {
					t.Fatalf("error %v, want one about %q without a secret", err, tt.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			user, _, _ := auth.BasicOf(id)
			if user != tt.user || (source != "") != tt.found {
				t.Errorf("user %q from %q, want %q and found %t", user, source, tt.user, tt.found)
			}
		})
	}
}
