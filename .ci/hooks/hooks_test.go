// Package hooks tests the hooks of this repository with the real pre-commit.
package hooks

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// site is a repository whose owner uses the hooks, and the repository that they come from: a snapshot of this one.
type site struct {
	t     *testing.T
	hooks string // where the hooks come from, released as tag
	dir   string // the user's repository
	env   []string
}

const tag = "v1.2.3"

func newSite(t *testing.T) *site {
	t.Helper()
	top := output(t, "", nil, "git", "rev-parse", "--show-toplevel")
	home, bin := t.TempDir(), t.TempDir()
	s := &site{t: t, hooks: t.TempDir(), dir: t.TempDir()}
	s.env = append(os.Environ(),
		"HOME="+home, "PRE_COMMIT_HOME="+filepath.Join(home, "pre-commit"), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
		"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.com", "GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.com",
		"GOCACHE="+output(t, "", nil, "go", "env", "GOCACHE"), "GOMODCACHE="+output(t, "", nil, "go", "env", "GOMODCACHE"),
		"GOPROXY=off", "GOFLAGS=-mod=mod -buildvcs=false",
	)
	output(t, top, nil, "go", "mod", "download")
	if err := os.Symlink(os.Getenv("HELMSRC"), filepath.Join(bin, "helmsrc")); err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(output(t, top, nil, "git", "ls-files", "-coz", "--exclude-standard"), "\x00"), "\x00") {
		copyFile(t, filepath.Join(top, name), filepath.Join(s.hooks, name))
	}
	output(t, s.hooks, nil, ".ci/release/set-tag", tag)
	s.git(s.hooks, "init", "-q", "-b", "main")
	s.git(s.hooks, "add", "-A", "-f")
	s.git(s.hooks, "commit", "-q", "-m", "snapshot")
	s.git(s.hooks, "tag", tag)
	s.git(s.dir, "init", "-q", "-b", "main")
	return s
}

func output(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return strings.TrimSpace(string(out))
}

// copyFile leaves out what is listed but no longer there.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if os.IsNotExist(err) {
		return
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, b, 0o755) // there are scripts among them
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (s *site) git(dir string, args ...string) string {
	s.t.Helper()
	return output(s.t, dir, s.env, "git", args...)
}

func (s *site) write(name, content string) {
	s.t.Helper()
	file := filepath.Join(s.dir, name)
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(content), 0o644)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// use configures one hook.
func (s *site) use(id, rest string) {
	s.t.Helper()
	s.write(".pre-commit-config.yaml", fmt.Sprintf("repos:\n- repo: %s\n  rev: %s\n  hooks:\n  - id: %s\n    verbose: true\n%s", s.hooks, tag, id, rest))
	s.save("use " + id)
}

// save commits everything without running a hook.
func (s *site) save(message string) {
	s.t.Helper()
	s.git(s.dir, "add", "-A")
	s.git(s.dir, "commit", "-q", "--allow-empty", "-m", message)
}

// run runs the hook on what is staged, and returns its output.
func (s *site) run(ok bool, args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, "pre-commit", append([]string{"run", "--color=never"}, args...)...)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if (err == nil) != ok {
		s.t.Fatalf("pre-commit: %v\n%s", err, out)
	}
	return string(out)
}

// stage runs the hook on everything that differs from the last commit.
func (s *site) stage(ok bool) string {
	s.t.Helper()
	s.git(s.dir, "add", "-A")
	return s.run(ok)
}

func (s *site) holds(out string, texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			s.t.Errorf("no %q in\n%s", text, out)
		}
	}
}

func chart(name, more string) string {
	return "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmChart\nmetadata: {name: " + name + "}\n" +
		"spec: {interval: 5m, chart: podinfo, version: 6.x, sourceRef: {kind: HelmRepository, name: podinfo}" + more + "}\n"
}

func repository(url string) string {
	return "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: podinfo}\n" +
		"spec: {interval: 5m, url: \"" + url + "\", secretRef: {name: login}}\n"
}

const release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: podinfo, namespace: apps}\nspec:\n  interval: 5m\n" +
	"  chart: {spec: {chart: podinfo, version: 6.x, sourceRef: {kind: HelmRepository, name: podinfo, namespace: default}}}\n" +
	"  valuesFrom: [{kind: ConfigMap, name: values}]\n"

const login = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {username: alice, password: pa55word}\n"

// TestValidate stages one change after the other; the source and its Secret are in files that do not change.
func TestValidate(t *testing.T) {
	s := newSite(t)
	s.write("infra/sources/podinfo.yaml", repository("https://repo.test"))
	s.write("infra/secrets/login.yaml", login)
	s.use("helmsrc-validate-system", "")

	s.write("apps/podinfo/chart.yaml", chart("podinfo", ""))
	s.holds(s.stage(true), "Passed", "HelmRepository default/podinfo is not in the input: using infra/sources/podinfo.yaml", "2 valid, 0 invalid")
	s.save("a chart")

	s.write("apps/podinfo/chart.yaml", chart("podinfo", ", vresion: 1.x"))
	s.holds(s.stage(false), "Failed", "apps/podinfo/chart.yaml:4", "vresion")
	s.git(s.dir, "checkout", "-q", "HEAD", "--", ".")

	// A renamed file is passed by its new name, a deleted one not at all.
	s.git(s.dir, "mv", "apps/podinfo/chart.yaml", "apps/podinfo/renamed chart.yaml")
	s.holds(s.stage(true), "Passed", "2 valid, 0 invalid")
	s.save("rename")

	// A release refers to a source in another namespace, and to values.
	s.write("infra/values.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: values, namespace: apps}\ndata: {values.yaml: \"a: b\"}\n")
	s.save("values")
	s.write("apps/podinfo/release.yaml", release)
	s.holds(s.stage(true), "Passed", "HelmRepository default/podinfo is not in the input", "ConfigMap apps/values is not in the input", "2 valid, 0 invalid")
	s.save("a release")

	s.git(s.dir, "rm", "-q", "infra/sources/podinfo.yaml")
	s.holds(s.stage(true), "Skipped")
	s.holds(s.run(false, "--all-files"), "Failed", `"podinfo" not found`)
	s.git(s.dir, "reset", "-q", "--hard")

	// A patch is no whole object, and a variable has its value elsewhere: what they are part of is judged.
	s.write("clusters/one/apps.yaml", "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\n"+
		"spec:\n  interval: 1h\n  prune: true\n  path: ./built\n  sourceRef: {kind: GitRepository, name: flux-system}\n  postBuild: {substitute: {INTERVAL: 5m}}\n")
	s.write("built/kustomization.yaml", "namespace: built\nresources: [source.yaml]\npatches: [{path: patch.yaml}]\n")
	s.write("built/source.yaml", "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: podinfo}\nspec: {interval: \"${INTERVAL}\", ref: {tag: 6.x}}\n")
	s.write("built/patch.yaml", "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: podinfo}\nspec: {url: \"oci://registry.test/podinfo\"}\n")
	s.save("a kustomization")
	s.write("built/patch.yaml", "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: podinfo}\nspec: {url: \"https://registry.test/podinfo\"}\n")
	s.holds(s.stage(false), "Failed", "OCIRepository built/podinfo: built/patch.yaml:4", "^oci://")
	s.write("built/patch.yaml", "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: podinfo}\nspec: {url: \"oci://registry.test/other\"}\n")
	s.holds(s.stage(true), "Passed", "1 valid, 0 invalid")
	s.save("a patch")

	// Not every file of this name is a manifest.
	s.write("tsconfig.json", "{\n  // a comment\n}\n")
	s.write(".clang-format", "BasedOnStyle: LLVM\n")
	s.write("charts/x/templates/deployment.yaml", "{{ if .Values.on }}\nkind: Deployment\n{{ end }}\n")
	s.write("-odd name.yaml", "a: b\n")
	s.holds(s.stage(true), "Passed", "0 valid, 0 invalid")
}

// TestManyFiles stages more files than a command line holds: pre-commit splits them over several runs of the hook.
func TestManyFiles(t *testing.T) {
	s := newSite(t)
	s.write("infra/podinfo.yaml", repository("https://repo.test"))
	s.write("infra/login.yaml", login)
	s.use("helmsrc-validate-system", "")
	name := func(i int) string { return fmt.Sprintf("apps/%s/chart-%04d.yaml", strings.Repeat("long-", 20), i) }
	for i := range 1500 {
		s.write(name(i), chart(fmt.Sprintf("chart-%d", i), ""))
	}
	out := s.stage(true)
	s.holds(out, "Passed")
	if n := strings.Count(out, " valid, 0 invalid"); n < 2 {
		t.Errorf("the files were given to %d runs, want several", n)
	}
	s.write(name(1200), chart("chart-1200", ", vresion: 1.x"))
	s.holds(s.stage(false), "Failed", "chart-1200.yaml:4")
}

// TestFetch fetches from a server on loopback that asks for the password of the Secret.
func TestFetch(t *testing.T) {
	s := newSite(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "alice" || password != "pa55word" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.URL.Path == "/index.yaml" {
			_, _ = w.Write([]byte("apiVersion: v1\nentries:\n  podinfo:\n  - {apiVersion: v2, name: podinfo, version: 6.9.2, urls: [podinfo-6.9.2.tgz]}\n"))
			return
		}
		http.ServeFile(w, r, filepath.Join(s.hooks, "examples", "charts", filepath.Base(r.URL.Path)))
	}))
	defer server.Close()
	s.write("infra/podinfo.yaml", repository(server.URL))
	s.write("infra/login.yaml", login)
	s.use("helmsrc-fetch-system", "")
	s.write("apps/podinfo/chart.yaml", chart("podinfo", ""))
	s.write("values.yaml", "nothing: here\n")
	s.holds(s.stage(true), "Passed", "pulled 'podinfo' chart with version '6.9.2'", "helmchart.source.toolkit.fluxcd.io/podinfo")
	if _, err := os.Stat(filepath.Join(s.dir, ".helmsrc/artifacts/helmchart/default/podinfo/podinfo-6.9.2.tgz")); err != nil {
		t.Error(err)
	}
	s.save("a chart")

	s.write("values.yaml", "nothing: there\n")
	s.holds(s.stage(true), "Passed", "0 ready, 0 failed")
	s.write("apps/podinfo/chart.yaml", strings.Replace(chart("podinfo", ""), "6.x", "7.x", 1))
	s.holds(s.stage(false), "Failed", "7.x")

	// Arguments of the user take the place of the hook's, not of its entry.
	s.use("helmsrc-fetch-system", "    args: [--artifacts-dir=elsewhere, --exit-zero, --output=name]\n")
	s.write("apps/podinfo/chart.yaml", strings.Replace(chart("podinfo", ""), "6.x", "8.x", 1))
	s.holds(s.stage(true), "Passed", "infra/podinfo.yaml")
}

// TestGolang has pre-commit build the program, from the modules that are available locally.
func TestGolang(t *testing.T) {
	s := newSite(t)
	s.write("infra/podinfo.yaml", repository("https://repo.test"))
	s.write("infra/login.yaml", login)
	s.use("helmsrc-validate", "")
	s.write("apps/podinfo/chart.yaml", chart("podinfo", ""))
	s.holds(s.stage(true), "Passed", "2 valid, 0 invalid")
}
