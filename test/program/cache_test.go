package program

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const cachedCharts = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: podinfo}
spec: {interval: 5m, url: "http://repo.test"}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: podinfo}
spec: {interval: 5m, chart: podinfo, version: 6.5.0, sourceRef: {kind: HelmRepository, name: podinfo}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: next}
spec: {interval: 5m, chart: podinfo, version: 6.6.0, sourceRef: {kind: HelmRepository, name: podinfo}}
`

const twoLargeCharts = "podinfo 6.5.0 random=podinfo/noise:300000\npodinfo 6.6.0 random=podinfo/noise:300000\n"

// TestKillCache kills runs that fill a cache at any moment. No file of the cache is damaged afterwards, and the next run uses
// its files without a warning.
func TestKillCache(t *testing.T) {
	t.Parallel()
	s := newStage(t, twoLargeCharts)
	s.write("charts.yaml", cachedCharts)
	start := time.Now()
	s.run("fetch", "-f", "charts.yaml", "-d", "first")
	whole := time.Since(start)
	for i := range kills {
		if i%2 == 0 {
			s.remove(".cache")
		}
		s.remove("artifacts")
		cmd := s.command("fetch", "-f", "charts.yaml")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(whole*time.Duration(i)/(kills*4/5), func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		kill.Stop()
		s.run("cache", "verify") // it fails if anything is damaged
		if i%10 != 9 {
			continue
		}
		s.remove("artifacts")
		out, err := s.command("fetch", "-f", "charts.yaml").CombinedOutput()
		if err != nil || bytes.Contains(out, []byte("warning")) {
			t.Errorf("after a run that was killed: %v\n%s", err, out)
		}
		s.checkArtifacts()
	}
}

// TestCacheTogether runs several processes with one cache, which does not exist yet and is too small for all files: each of
// them gets the same files as alone.
func TestCacheTogether(t *testing.T) {
	t.Parallel()
	const processes = 6
	s := newStage(t, twoLargeCharts)
	s.write("charts.yaml", cachedCharts)
	for round, room := range []string{"2Gi", "400Ki"} {
		var running []*exec.Cmd
		var said []*bytes.Buffer
		for i := range processes {
			cmd, out := s.command("fetch", "-f", "charts.yaml", "-d", fmt.Sprintf("d%d-%d", round, i), "--cache-max-size", room), &bytes.Buffer{}
			cmd.Stdout, cmd.Stderr = out, out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			running, said = append(running, cmd), append(said, out)
		}
		for i, cmd := range running {
			if err := cmd.Wait(); err != nil || strings.Contains(said[i].String(), "warning") {
				t.Errorf("%v\n%s", err, said[i])
			}
		}
		s.run("cache", "verify")
		for i := range processes {
			for _, name := range []string{"helmchart/default/podinfo/podinfo-6.5.0.tgz", "helmchart/default/next/podinfo-6.6.0.tgz"} {
				want, err := os.ReadFile(filepath.Join(s.dir, "d0-0", name))
				got, failed := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("d%d-%d", round, i), name))
				if err != nil || failed != nil || !bytes.Equal(got, want) {
					t.Errorf("process %d: %s is another one (%v, %v)", i, name, err, failed)
				}
			}
		}
	}
}
