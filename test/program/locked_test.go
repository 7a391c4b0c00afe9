package program

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/cmd"
	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/lock"
)

// TestLockedCost locks 300 charts from 25 sources. A locked run requests each archive once, and nothing else. The next run
// sends no request and writes no file. BenchmarkLocked measures the time.
func TestLockedCost(t *testing.T) {
	const sources, each = 25, 12
	network, servers, file := lockedWorld(t, sources, each)
	dir := t.TempDir()
	lockFile := filepath.Join(dir, lock.FileName)
	drain := func() (requests []string) {
		for _, s := range servers {
			for _, r := range s.Log.Drain() {
				requests = append(requests, r.String())
			}
		}
		return requests
	}
	inProcess(t, network, "lock", "-f", file, "--lock-file", lockFile)
	written, err := os.Stat(lockFile)
	if err != nil {
		t.Fatal(err)
	}
	drain()
	inProcess(t, network, "lock", "-f", file, "--lock-file", lockFile)
	if again, err := os.Stat(lockFile); err != nil || !os.SameFile(written, again) {
		t.Errorf("a lock that fits is written again: %v", err)
	}
	if got := drain(); len(got) > 0 {
		t.Errorf("a lock that fits asks for %q", got[:min(3, len(got))])
	}
	artifacts := filepath.Join(dir, "artifacts")
	fetch := []string{"fetch", "-f", file, "--lock-file", lockFile, "--locked", "-d", artifacts, "-o", "name"}
	inProcess(t, network, fetch...)
	cold := drain()
	if len(cold) != sources*each/2 || slices.ContainsFunc(cold, func(r string) bool { return strings.Contains(r, "index.yaml") }) {
		t.Errorf("%d requests of the first run, want %d archives", len(cold), sources*each/2)
	}
	before := filesBelow(t, artifacts)
	inProcess(t, network, fetch...)
	if got := drain(); len(got) > 0 {
		t.Errorf("%d requests of a run that changes nothing, the first %s", len(got), got[0])
	}
	if after := filesBelow(t, artifacts); !maps.EqualFunc(after, before, os.SameFile) {
		t.Error("a run that changes nothing writes files")
	}
}

// BenchmarkLocked measures a run that finds 300 locked charts from 25 sources in the artifacts directory.
func BenchmarkLocked(b *testing.B) {
	network, _, file := lockedWorld(b, 25, 12)
	dir := b.TempDir()
	lockFile := filepath.Join(dir, lock.FileName)
	inProcess(b, network, "lock", "-f", file, "--lock-file", lockFile)
	fetch := []string{"fetch", "-f", file, "--lock-file", lockFile, "--locked", "-d", filepath.Join(dir, "artifacts"), "-o", "name"}
	inProcess(b, network, fetch...)
	for b.Loop() {
		inProcess(b, network, fetch...)
	}
}

// lockedWorld serves repositories with six charts each, and writes manifests that request each of them by version and by
// range.
func lockedWorld(t testing.TB, sources, each int) (*helmtest.Network, []*helmtest.Server, string) {
	t.Helper()
	network := helmtest.NewNetwork()
	var servers []*helmtest.Server
	manifests := &strings.Builder{}
	for i := range sources {
		name := fmt.Sprintf("repo-%02d", i)
		servers = append(servers, servePublished(t, network, name))
		fmt.Fprintf(manifests, "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: %[1]s}\nspec: {interval: 1h, url: \"http://%[1]s.test\"}\n", name)
		for j := range each {
			version := []string{"1.2.3", "^1"}[j%2]
			fmt.Fprintf(manifests, "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmChart\nmetadata: {name: %[1]s-%[2]d}\nspec: {interval: 1h, chart: %[1]s-chart-%[3]d, version: %[4]s, sourceRef: {kind: HelmRepository, name: %[1]s}}\n", name, j, j/2, version)
		}
	}
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(file, []byte(manifests.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return network, servers, file
}

// servePublished serves six charts, whose names begin with that of the repository.
func servePublished(t testing.TB, network *helmtest.Network, name string) *helmtest.Server {
	t.Helper()
	var published []helmtest.Published
	for i := range 6 {
		c := helmtest.NewChart(fmt.Sprintf("%s-chart-%d", name, i), "1.2.3")
		m, err := c.Metadata()
		if err != nil {
			t.Fatal(err)
		}
		archive, err := c.Package()
		if err != nil {
			t.Fatal(err)
		}
		published = append(published, helmtest.Published{
			Metadata: *m, Archive: archive, Created: helmtest.Created, URLs: []string{m.Name + "-" + m.Version + ".tgz"}, Digest: fmt.Sprintf("%x", sha256.Sum256(archive)),
		})
	}
	repository, err := helmtest.NewRepository(published)
	if err != nil {
		t.Fatal(err)
	}
	server, err := helmtest.Serve(network, name+".test:80", nil, repository)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

// inProcess runs a command line, which must succeed.
func inProcess(t testing.TB, network *helmtest.Network, args ...string) {
	t.Helper()
	var stderr bytes.Buffer
	code := cmd.Run(t.Context(), &cmd.Env{
		Args: args, Stdin: bytes.NewReader(nil), Stdout: new(bytes.Buffer), Stderr: &stderr,
		Terminal: func() (int, int, bool) { return 0, 0, false }, Getenv: func(string) string { return "" },
		Now: time.Now, Dial: network.Dial, Program: "helmsrc",
	})
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, &stderr)
	}
}

// TestKillLock kills runs that write a lock, and locked runs, at any moment. The lock is always the complete lock of one of
// them, and the files in the artifacts directory and the cache are complete.
func TestKillLock(t *testing.T) {
	t.Parallel()
	s := newStage(t, "podinfo 6.5.0\npodinfo 6.6.0\n")
	var files []string
	for _, version := range []string{"6.5.0", "6.6.0"} {
		file := "charts-" + version + ".yaml"
		s.write(file, fmt.Sprintf(`
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: podinfo}
spec: {interval: 5m, url: "http://repo.test"}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: podinfo}
spec: {interval: 5m, chart: podinfo, version: %s, sourceRef: {kind: HelmRepository, name: podinfo}}
`, version))
		files = append(files, file)
	}
	s.run("lock", "-f", files[1])
	start := time.Now()
	s.run("lock", "-f", files[0])
	whole := time.Since(start)
	for i := range kills {
		run := s.command("lock", "-f", files[i%2])
		if i%4 > 1 { // with the existing lock, which may be that of the other version
			run = s.command("fetch", "-f", files[i%2], "--locked", "--refresh")
		}
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(whole*time.Duration(i)/(kills*4/5), func() { _ = run.Process.Kill() })
		_ = run.Wait()
		kill.Stop()
		content, err := os.ReadFile(filepath.Join(s.dir, lock.FileName))
		if err != nil {
			t.Fatal(err)
		}
		if l, err := lock.Read(content); err != nil || len(l.Entries()) != 1 {
			t.Fatalf("after a kill: %v\n%s", err, content)
		}
		s.checkArtifacts()
	}
	s.run("cache", "verify")
	s.run("lock", "-f", files[0])
	s.run("lock", "-f", files[0], "--check")
	s.run("fetch", "-f", files[0], "--locked")
	if left := s.leftovers(); left != nil {
		t.Errorf("after a whole run there are %q", left)
	}
}
