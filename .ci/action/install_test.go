// Package action runs the shell of the GitHub Action with the environment and the files of a runner.
package action

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// runner is a machine that runs actions: directories, files that steps write to, and programs.
type runner struct {
	t   *testing.T
	dir string
	env map[string]string
}

// tools are the programs that a runner has. Those that may be missing are added by a test.
var tools = []string{"bash", "cat", "chmod", "cmp", "cp", "curl", "cut", "dirname", "env", "find", "grep", "gzip", "mkdir", "mktemp", "mv", "rm", "sha256sum", "sort", "tar", "unzip"}

func newRunner(t *testing.T) *runner {
	t.Helper()
	r := &runner{t: t, dir: t.TempDir()}
	for _, d := range []string{"bin", "temp", "tools", "work"} {
		r.check(os.Mkdir(filepath.Join(r.dir, d), 0o755))
	}
	for _, tool := range tools {
		path, err := exec.LookPath(tool)
		r.check(err)
		r.check(os.Symlink(path, filepath.Join(r.dir, "bin", tool)))
	}
	r.env = map[string]string{
		"PATH": r.dir + "/bin", "HOME": r.dir, "RUNNER_TEMP": r.dir + "/temp", "RUNNER_TOOL_CACHE": r.dir + "/tools",
		"RUNNER_OS": "Linux", "RUNNER_ARCH": "X64",
		"GITHUB_OUTPUT": r.dir + "/output", "GITHUB_PATH": r.dir + "/path",
	}
	return r
}

func (r *runner) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// program puts a script into the PATH. It notes its arguments, one a line, and then does what body says.
func (r *runner) program(name, body string) {
	r.t.Helper()
	text := "#!/bin/bash\nprintf '%s\\n' \"$@\" >" + r.dir + "/" + name + ".args\n" + body + "\n"
	r.check(os.WriteFile(filepath.Join(r.dir, "bin", name), []byte(text), 0o755))
}

// run runs a script of the action and returns its output.
func (r *runner) run(script string, code int) string { return r.runWith(script, code) }

func (r *runner) runWith(script string, code int, args ...string) string {
	r.t.Helper()
	script, err := filepath.Abs(filepath.Join("..", "..", "actions", script))
	r.check(err)
	cmd := exec.CommandContext(r.t.Context(), "bash", append([]string{script}, args...)...)
	cmd.Dir = filepath.Join(r.dir, "work")
	for k, v := range r.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		r.t.Fatalf("%v, want exit code %d\n%s", err, code, out)
	}
	if left, _ := filepath.Glob(r.dir + "/*/pwned"); left != nil {
		r.t.Errorf("an input was run as a command: %s", left)
	}
	if left, _ := filepath.Glob(r.dir + "/temp/helmsrc.*"); left != nil && !strings.HasSuffix(left[0], ".sarif") {
		r.t.Errorf("left behind: %s", left)
	}
	return string(out)
}

func (r *runner) read(name string) string {
	b, _ := os.ReadFile(filepath.Join(r.dir, name))
	return string(b)
}

func (r *runner) holds(out string, texts ...string) {
	r.t.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			r.t.Errorf("no %q in\n%s", text, out)
		}
	}
}

// release is a server with the files of one release, at the place where GitHub would have them.
type release struct {
	version  string
	files    map[string][]byte
	requests []string
}

const program = "#!/bin/bash\necho helmsrc v1.2.3\n"

func newRelease(t *testing.T, r *runner) *release {
	t.Helper()
	rel := &release{version: "v1.2.3", files: map[string][]byte{
		"helmsrc_1.2.3_linux_amd64.tar.gz":  tarball(t, map[string]string{"helmsrc": program, "../../escaped": "x", "LICENSE": "x"}),
		"helmsrc_1.2.3_darwin_arm64.tar.gz": tarball(t, map[string]string{"helmsrc": program}),
		"helmsrc_1.2.3_windows_amd64.zip":   zipped(t, map[string]string{"helmsrc.exe": program}),
	}}
	rel.sum()
	rel.files["checksums.txt.sigstore.json"] = []byte("{}")
	server := httptest.NewTLSServer(http.HandlerFunc(rel.serve))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	r.check(os.WriteFile(r.dir+"/ca.pem", ca, 0o600))
	r.env["CURL_CA_BUNDLE"] = r.dir + "/ca.pem"
	r.env["RELEASES_URL"] = server.URL + "/releases"
	return rel
}

// sum writes checksums.txt as goreleaser does.
func (rel *release) sum() {
	var sums strings.Builder
	for name, content := range rel.files {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), name)
	}
	rel.files["checksums.txt"] = []byte(sums.String())
}

func (rel *release) serve(w http.ResponseWriter, r *http.Request) {
	rel.requests = append(rel.requests, r.Method+" "+r.URL.Path)
	if r.URL.Path == "/releases/latest" {
		http.Redirect(w, r, "/releases/tag/"+rel.version, http.StatusFound)
		return
	}
	if r.URL.Path == "/releases/tag/"+rel.version {
		return
	}
	content, ok := rel.files[strings.TrimPrefix(r.URL.Path, "/releases/download/"+rel.version+"/")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(content)
}

func tarball(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	w := tar.NewWriter(gz)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(content))
	}
	_, _ = w.Close(), gz.Close()
	return b.Bytes()
}

func zipped(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range files {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.Write([]byte(content))
	}
	_ = w.Close()
	return b.Bytes()
}

func TestInstall(t *testing.T) {
	for _, tt := range []struct{ name, version, ref, system, arch, want string }{
		{"version", "v1.2.3", "", "Linux", "X64", "linux_amd64"},
		{"without v", "1.2.3", "v9.9.9", "Linux", "X64", "linux_amd64"},
		{"latest", "latest", "v9.9.9", "Linux", "X64", "linux_amd64"},
		{"of the action", "", "v1.2.3", "macOS", "ARM64", "darwin_arm64"},
		{"of a branch of the action", "", "main", "Linux", "X64", "linux_amd64"},
		{"for Windows", "v1.2.3", "", "Windows", "X64", "windows_amd64"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRunner(t)
			rel := newRelease(t, r)
			r.env["VERSION"], r.env["ACTION_REF"], r.env["RUNNER_OS"], r.env["RUNNER_ARCH"] = tt.version, tt.ref, tt.system, tt.arch
			out := r.run("setup/install.sh", 0)
			home := r.dir + "/temp/helmsrc/program/1.2.3/" + tt.want
			r.holds(out, "has the checksum of the release", "::warning title=helmsrc::the provenance was not checked", "helmsrc v1.2.3")
			if got := r.read("path"); got != home+"\n" {
				t.Errorf("GITHUB_PATH %q", got)
			}
			if got := r.read("output"); got != "version=v1.2.3\npath="+home+"\n" {
				t.Errorf("GITHUB_OUTPUT %q", got)
			}
			if _, err := os.Stat(r.dir + "/escaped"); err == nil {
				t.Error("the archive wrote outside its directory")
			}
			// The archive is there now, on a runner that is used again: only its checksum is requested.
			rel.requests = nil
			r.env["VERSION"] = "v1.2.3"
			r.holds(r.run("setup/install.sh", 0), "is in the tool cache, with the checksum of the release", "helmsrc v1.2.3")
			if want := []string{"GET /releases/download/v1.2.3/checksums.txt"}; !slices.Equal(rel.requests, want) {
				t.Errorf("requests %q, want %q", rel.requests, want)
			}
		})
	}
}

func TestInstallRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		change     func(*runner, *release)
	}{
		{"another checksum", "but the release says", func(_ *runner, rel *release) {
			rel.files["helmsrc_1.2.3_linux_amd64.tar.gz"] = tarball(t, map[string]string{"helmsrc": program + "# altered"})
		}},
		{"no checksum", "the release has no checksum for helmsrc_1.2.3_linux_amd64.tar.gz", func(_ *runner, rel *release) {
			rel.files["checksums.txt"] = []byte(strings.Repeat("0", 64) + "  helmsrc_1.2.3_linux_amd64.tar.gz.sbom.json\n")
		}},
		{"an invalid checksum", "the release has no checksum", func(_ *runner, rel *release) {
			rel.files["checksums.txt"] = []byte("x  helmsrc_1.2.3_linux_amd64.tar.gz\n")
		}},
		{"no checksums", "has no checksums", func(_ *runner, rel *release) { delete(rel.files, "checksums.txt") }},
		{"no such version", "release v1.2.4 has no checksums", func(r *runner, _ *release) { r.env["VERSION"] = "v1.2.4" }},
		{"no releases", "the latest version could not be found out", func(r *runner, _ *release) {
			r.env["VERSION"], r.env["RELEASES_URL"] = "latest", r.env["RELEASES_URL"]+"/none"
		}},
		{"no archive", "there is no helmsrc_1.2.3_linux_amd64.tar.gz in release v1.2.3", func(_ *runner, rel *release) {
			delete(rel.files, "helmsrc_1.2.3_linux_amd64.tar.gz")
		}},
		{"plain HTTP", "release v1.2.3 has no checksums", func(r *runner, _ *release) {
			r.env["RELEASES_URL"] = strings.Replace(r.env["RELEASES_URL"], "https://", "http://", 1)
		}},
		{"another system", "there is no helmsrc for the system 'Plan9'", func(r *runner, _ *release) { r.env["RUNNER_OS"] = "Plan9" }},
		{"another architecture", "there is no helmsrc for the architecture 'ARM'", func(r *runner, _ *release) { r.env["RUNNER_ARCH"] = "ARM" }},
		{"no policy", "the input verify is not one of auto, required, off", func(r *runner, _ *release) { r.env["VERIFY"] = "maybe" }},
		{"provenance that cannot be checked", "the provenance cannot be checked", func(r *runner, _ *release) { r.env["VERIFY"] = "required" }},
		{"provenance that is refused", "the provenance of helmsrc_1.2.3_linux_amd64.tar.gz was refused", func(r *runner, _ *release) {
			r.env["GH_TOKEN"] = "t0ken"
			r.program("gh", "exit 1")
		}},
		{"a signature that is refused", "the signature of the checksums was refused", func(r *runner, _ *release) { r.program("cosign", "exit 1") }},
		{"no signature", "the release has no signature", func(r *runner, rel *release) {
			r.program("cosign", "")
			delete(rel.files, "checksums.txt.sigstore.json")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRunner(t)
			rel := newRelease(t, r)
			r.env["VERSION"] = "v1.2.3"
			tt.change(r, rel)
			r.refused(r.run("setup/install.sh", 1), tt.want)
		})
	}
}

// refused expects one error and nothing installed.
func (r *runner) refused(out, want string) {
	r.t.Helper()
	r.holds(out, "::error title=helmsrc::", want)
	if r.read("path") != "" || r.read("output") != "" {
		r.t.Errorf("GITHUB_PATH %q, GITHUB_OUTPUT %q", r.read("path"), r.read("output"))
	}
	for _, dir := range []string{"/tools/helmsrc/*/*", "/temp/helmsrc/program/*/*"} {
		if found, _ := filepath.Glob(r.dir + dir); found != nil {
			r.t.Errorf("installed: %s", found)
		}
	}
}

// TestVersionsThatAreNone: what is no version never becomes part of a URL or a path, and is not run.
func TestVersionsThatAreNone(t *testing.T) {
	for _, version := range []string{
		"v1.2", "main", "v1.2.3/../../evil", "../../../v1.2.3", "v1.2.3; touch pwned", "$(touch pwned)", "`touch pwned`", "v1.2.3\nPATH=/tmp",
		"v1.2.3 --insecure", "--insecure", "v1.2.3%0A", "v1.2.3'", "*",
	} {
		r := newRunner(t)
		rel := newRelease(t, r)
		r.env["VERSION"], r.env["ACTION_REF"] = version, version
		r.refused(r.run("setup/install.sh", 1), "the input version is neither latest nor a version")
		if len(rel.requests) > 0 {
			t.Errorf("%q: requests %q", version, rel.requests)
		}
	}
}

func TestProvenance(t *testing.T) {
	archive := "helmsrc_1.2.3_linux_amd64.tar.gz"
	t.Run("gh", func(t *testing.T) {
		r := newRunner(t)
		newRelease(t, r)
		r.env["VERSION"], r.env["GH_TOKEN"], r.env["VERIFY"] = "v1.2.3", "t0ken", "required"
		r.program("gh", "")
		r.program("cosign", "exit 1")
		out := r.run("setup/install.sh", 0)
		want := []string{
			"attestation", "verify", archive, "--repo", "helmsrc/helmsrc",
			"--cert-identity", "https://github.com/helmsrc/helmsrc/.github/workflows/release.yml@refs/tags/v1.2.3", "--deny-self-hosted-runners",
		}
		if got := strings.Fields(r.read("gh.args")); !slices.Equal(got, want) {
			t.Errorf("gh %q", got)
		}
		if strings.Contains(out, "t0ken") || strings.Contains(out, "::warning") {
			t.Error(out)
		}
	})
	t.Run("cosign", func(t *testing.T) {
		r := newRunner(t)
		newRelease(t, r)
		r.env["VERSION"], r.env["VERIFY"] = "v1.2.3", "required"
		r.program("gh", "exit 1") // of no use without a token
		r.program("cosign", "test -s checksums.txt -a -s checksums.txt.sigstore.json")
		r.run("setup/install.sh", 0)
		r.holds(r.read("cosign.args"), "verify-blob\nchecksums.txt\n", "/.github/workflows/release.yml@refs/tags/v1.2.3\n", "https://token.actions.githubusercontent.com\n")
	})
	t.Run("off", func(t *testing.T) {
		r := newRunner(t)
		newRelease(t, r)
		r.env["VERSION"], r.env["VERIFY"] = "v1.2.3", "off"
		r.program("cosign", "exit 1")
		if out := r.run("setup/install.sh", 0); strings.Contains(out, "::warning") {
			t.Error(out)
		}
	})
}

// TestToolCache: what lies in the tool cache of a runner that is used again counts for nothing until it was checked.
func TestToolCache(t *testing.T) {
	const archive = "helmsrc_1.2.3_linux_amd64.tar.gz"
	start := func(t *testing.T, verify string) (*runner, *release) {
		r := newRunner(t)
		rel := newRelease(t, r)
		r.env["VERSION"], r.env["GH_TOKEN"], r.env["VERIFY"] = "v1.2.3", "t0ken", verify
		return r, rel
	}
	plant := func(t *testing.T, r *runner, name, content string) {
		t.Helper()
		name = filepath.Join(r.dir, "tools/helmsrc/1.2.3", name)
		r.check(os.MkdirAll(filepath.Dir(name), 0o755))
		r.check(os.WriteFile(name, []byte(content), 0o755))
	}
	for _, verify := range []string{"auto", "required", "off"} {
		t.Run("a planted program, "+verify, func(t *testing.T) {
			r, _ := start(t, verify)
			r.program("gh", "")
			plant(t, r, "linux_amd64/helmsrc", "#!/bin/bash\ntouch pwned\necho planted\n")
			if out := r.run("setup/install.sh", 0); strings.Contains(out, "planted") || strings.Contains(r.read("path"), "/tools/") {
				t.Errorf("the planted program is used\n%s%s", r.read("path"), out)
			}
		})
		t.Run("a planted archive, "+verify, func(t *testing.T) {
			r, rel := start(t, verify)
			r.program("gh", "")
			plant(t, r, "archives/"+archive, string(tarball(t, map[string]string{"helmsrc": "#!/bin/bash\necho planted\n"})))
			if out := r.run("setup/install.sh", 0); strings.Contains(out, "planted") || !strings.Contains(out, "helmsrc v1.2.3") {
				t.Errorf("the planted archive is used\n%s", out)
			}
			if !slices.Contains(rel.requests, "GET /releases/download/v1.2.3/"+archive) {
				t.Errorf("requests %q", rel.requests)
			}
			if got := r.read("tools/helmsrc/1.2.3/archives/" + archive); got != string(rel.files[archive]) {
				t.Error("the planted archive is still there")
			}
		})
	}
	t.Run("refused the second time", func(t *testing.T) {
		r, _ := start(t, "required")
		r.program("gh", "")
		r.run("setup/install.sh", 0)
		r.program("gh", "exit 1")
		r.check(os.Remove(r.dir + "/path"))
		r.holds(r.run("setup/install.sh", 1), "the provenance of "+archive+" was refused")
		if r.read("path") != "" {
			t.Errorf("GITHUB_PATH %q", r.read("path"))
		}
	})
	t.Run("not checkable the second time", func(t *testing.T) {
		r, _ := start(t, "required")
		r.program("gh", "")
		r.run("setup/install.sh", 0)
		delete(r.env, "GH_TOKEN")
		r.holds(r.run("setup/install.sh", 1), "the provenance cannot be checked")
	})
	t.Run("a cache that cannot be written", func(t *testing.T) {
		r, _ := start(t, "required")
		r.program("gh", "")
		r.check(os.WriteFile(r.dir+"/tools/helmsrc", nil, 0o600))
		r.holds(r.run("setup/install.sh", 0), "the tool cache cannot be written", "helmsrc v1.2.3")
	})
}
