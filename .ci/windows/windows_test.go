// Package windows runs the program for Windows in Wine.
package windows

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// desk is a directory on drive C: and a Helm repository on loopback.
type desk struct {
	t   *testing.T
	dir string // as Linux calls it
	url string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Join(os.Getenv("WINEPREFIX"), "drive_c"), "desk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	files := map[string][]byte{}
	index := "apiVersion: v1\nentries:\n"
	for _, chart := range []string{"podinfo", "con", "nul"} {
		files["/"+chart+"-1.0.0.tgz"] = archive(t, chart)
		index += fmt.Sprintf("  %s:\n  - {apiVersion: v2, name: %[1]s, version: 1.0.0, digest: %x, urls: [%[1]s-1.0.0.tgz]}\n", chart, sha256.Sum256(files["/"+chart+"-1.0.0.tgz"]))
	}
	files["/index.yaml"] = []byte(index)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(server.Close)
	return &desk{t, dir, server.URL}
}

func archive(t *testing.T, chart string) []byte {
	t.Helper()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	text := "apiVersion: v2\nname: " + chart + "\nversion: 1.0.0\n"
	err := tw.WriteHeader(&tar.Header{Name: chart + "/Chart.yaml", Mode: 0o644, Size: int64(len(text))})
	if err == nil {
		_, err = tw.Write([]byte(text))
	}
	if err = errors.Join(err, tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// write writes a file, whose lines end as Windows ends them.
func (d *desk) write(name, text string) {
	d.t.Helper()
	name = filepath.Join(d.dir, name)
	text = strings.ReplaceAll(strings.ReplaceAll(text, "URL", d.url), "\n", "\r\n")
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		d.t.Fatal(err)
	}
}

// run runs the program in the directory, and returns its exit code and what it prints.
func (d *desk) run(args ...string) (int, string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "wine", append([]string{os.Getenv("PROGRAM")}, args...)...)
	cmd.Dir = d.dir
	out, err := cmd.CombinedOutput()
	text := strings.ReplaceAll(string(out), "\r\n", "\n")
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), text
	}
	if err != nil {
		d.t.Fatalf("%s: %v\n%s", args, err, text)
	}
	return 0, text
}

// want runs the program, and expects an exit code and a part of what it prints.
func (d *desk) want(code int, part string, args ...string) {
	d.t.Helper()
	got, text := d.run(args...)
	if got != code || !strings.Contains(text, part) {
		d.t.Errorf("%s: exit code %d, want %d with %q:\n%s", args, got, code, part, text)
	}
}

// exists reports whether a file is there.
func (d *desk) exists(name string) bool {
	_, err := os.Stat(filepath.Join(d.dir, name))
	return err == nil
}

const repository = `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: repo, namespace: apps}
spec: {interval: 5m, url: URL}
---
`

func chart(name, of string) string {
	return fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmChart\nmetadata: {name: %s, namespace: apps}\nspec: {interval: 5m, chart: %s, version: 1.x, sourceRef: {kind: HelmRepository, name: repo}}\n---\n", name, of)
}

// TestCommands takes a repository from validation to a bundle, with paths as Windows writes them and files with its line ends.
func TestCommands(t *testing.T) {
	d := newDesk(t)
	d.write("clusters/apps/all.yaml", repository+chart("podinfo", "podinfo"))
	drive := `C:\` + filepath.Base(d.dir)
	d.want(0, "2 valid, 0 invalid", "validate", `clusters\apps\all.yaml`)
	d.want(0, "2 valid, 0 invalid", "validate", "-R", "-f", drive+`\clusters`)
	d.want(0, "2 valid, 0 invalid", "validate", "-f", `clusters/apps/*.yaml`)
	d.want(0, "1 resolved", "lock", "-R", "-f", "clusters", "--cache-dir", drive+`\cache`)
	d.want(0, "1 locked, 0 out of date", "lock", "-R", "-f", "clusters", "--cache-dir", "cache", "--check")
	d.want(0, "2 ready", "fetch", "-R", "-f", "clusters", "--cache-dir", "cache", "-o", "name")
	if !d.exists("artifacts/helmchart/apps/podinfo/podinfo-1.0.0.tgz") {
		t.Error("the chart is not where it should be")
	}
	d.want(0, "2 ready", "fetch", "-R", "-f", "clusters", "--cache-dir", "cache", "-o", "name", "-d", `other\artifacts`, "--offline")
	d.want(0, "ready", "status", "-R", "-f", "clusters", "-o", "table")
	d.want(0, "podinfo", "cache", "ls", "--cache-dir", "cache")
	d.want(0, "", "cache", "verify", "--cache-dir", "cache")
	d.want(0, "charts.tar", "bundle", "-R", "-f", "clusters", "-o", "charts.tar", "--cache-dir", "cache")
	d.want(0, "1 ready", "fetch", "-R", "-f", "clusters", "--from", drive+`\charts.tar`, "--no-cache", "-o", "name", "-d", "carried")
	d.want(0, "", "cache", "prune", "--cache-dir", "cache")
}

// TestPlaces: findings name files with the slashes that SARIF and people expect, whatever the line ends.
func TestPlaces(t *testing.T) {
	d := newDesk(t)
	d.write("clusters/bad.yaml", repository+strings.Replace(chart("podinfo", "podinfo"), "version: 1.x", "version: ']['", 1))
	d.want(1, `clusters\bad.yaml:9:`, "validate", "-R", "-f", "clusters", "--report", "sarif=out.sarif")
	text, err := os.ReadFile(filepath.Join(d.dir, "out.sarif"))
	if err != nil || !strings.Contains(string(text), `"uri": "clusters/bad.yaml"`) {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestReservedNames: charts may be called as devices are. An object that is so, whose name would be that of a directory, is refused with
// the reason, and no other one with it.
func TestReservedNames(t *testing.T) {
	d := newDesk(t)
	d.write("all.yaml", repository+chart("a", "con")+chart("b", "nul"))
	d.want(0, "3 ready", "fetch", "-f", "all.yaml", "--no-cache", "-o", "name")
	for _, name := range []string{"a/con-1.0.0.tgz", "b/nul-1.0.0.tgz"} {
		if !d.exists("artifacts/helmchart/apps/" + name) {
			t.Errorf("%s is missing", name)
		}
	}
	d.write("devices.yaml", repository+chart("con", "podinfo")+chart("aux.b", "podinfo")+chart("conn", "podinfo"))
	code, text := d.run("fetch", "-f", "devices.yaml", "--no-cache", "-o", "name", "-d", "devices")
	for _, name := range []string{"con", "aux.b"} {
		if want := fmt.Sprintf("name %q cannot be used as a file name in the artifacts directory", name); code != 1 || !strings.Contains(text, want) {
			t.Errorf("exit code %d, want 1 with %q:\n%s", code, want, text)
		}
	}
	if !d.exists("devices/helmchart/apps/conn/podinfo-1.0.0.tgz") {
		t.Errorf("conn is missing:\n%s", text)
	}
	d.write("colon.yaml", repository+strings.Replace(chart("a", "podinfo"), "name: a,", `name: "a:b",`, 1))
	d.want(1, "a:b", "fetch", "-f", "colon.yaml", "--no-cache", "-o", "name", "-d", "colon")
}

// TestInUse: a file that another process has open is left as it was, with an error.
func TestInUse(t *testing.T) {
	d := newDesk(t)
	d.write("all.yaml", repository+chart("podinfo", "podinfo"))
	d.write("artifacts/helmchart/apps/podinfo", "a file in the place of a directory")
	code, text := d.run("fetch", "-f", "all.yaml", "--no-cache", "-o", "name")
	if code != 1 || !strings.Contains(text, "apps/podinfo") {
		t.Errorf("exit code %d\n%s", code, text)
	}
	if left, err := filepath.Glob(filepath.Join(d.dir, ".helmsrc-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestLongPaths stores below a directory whose path has more than 260 characters.
func TestLongPaths(t *testing.T) {
	d := newDesk(t)
	d.write("all.yaml", repository+chart("podinfo", "podinfo"))
	long := strings.Repeat("a-long-name-of-a-directory/", 12) + "artifacts"
	d.want(0, "2 ready", "fetch", "-f", "all.yaml", "--no-cache", "-o", "name", "-d", strings.ReplaceAll(long, "/", `\`))
	if !d.exists(long + "/helmchart/apps/podinfo/podinfo-1.0.0.tgz") {
		t.Error("the chart is missing")
	}
}

// TestEdits: a file keeps its line ends when versions are edited in it.
func TestEdits(t *testing.T) {
	d := newDesk(t)
	d.write("all.yaml", repository+strings.Replace(chart("podinfo", "podinfo"), "version: 1.x", "version: 0.9.0", 1))
	d.want(0, "", "update", "-f", "all.yaml", "--level", "major", "--no-cache")
	text, err := os.ReadFile(filepath.Join(d.dir, "all.yaml"))
	if err != nil || !strings.Contains(string(text), "version: 1.0.0") || strings.Count(string(text), "\n") != strings.Count(string(text), "\r\n") {
		t.Errorf("%v\n%q", err, text)
	}
}
