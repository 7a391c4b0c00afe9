package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/helmtest/registry"
)

// carriedCharts returns a stage with charts of 300 KiB each that cannot be compressed, and a registry to mirror them to.
func carriedCharts(t *testing.T, charts int) *stage {
	t.Helper()
	var published, manifests strings.Builder
	manifests.WriteString("apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: repo, namespace: apps}\nspec: {interval: 5m, url: http://repo.test}\n")
	for i := range charts {
		fmt.Fprintf(&published, "chart%d 1.0.0 random=chart%[1]d/large:307200\n", i)
		fmt.Fprintf(&manifests, "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmChart\nmetadata: {name: chart%d, namespace: apps}\nspec: {interval: 5m, chart: chart%[1]d, sourceRef: {kind: HelmRepository, name: repo}}\n", i)
	}
	s := newStage(t, published.String())
	s.write("in/all.yaml", manifests.String())
	s.world.Kinds["registry"] = registry.Kind
	s.write("registry/charts", "")
	if err := s.world.Start("registry", filepath.Join(s.dir, "registry")); err != nil {
		t.Fatal(err)
	}
	s.write(stateDir+"/network", s.world.Network.String())
	return s
}

// peak runs a command, and returns its peak memory in bytes, and its error. The kernel's figure for a process that ended also
// counts the process that started it, and this one has the servers.
func peak(cmd *exec.Cmd) (most int64, err error) {
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case err := <-done:
			return most, err
		case <-time.After(10 * time.Millisecond):
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)) // it may have ended
			_, after, _ := strings.Cut(string(status), "VmHWM:")
			var kib int64
			if _, err := fmt.Sscan(after, &kib); err == nil {
				most = max(most, kib<<10)
			}
		}
	}
}

// carriedPeaks bundles charts, adds to a bundle, mirrors it and fetches from it. It returns the peak memory of each command,
// in bytes.
func carriedPeaks(t *testing.T, charts int) map[string]int64 {
	s := carriedCharts(t, charts)
	s.run("lock", "-f", "in")
	peaks := map[string]int64{}
	for _, args := range []string{
		"bundle -f in -o charts.tar",
		"bundle -f in -o later.tar --since charts.tar",
		"mirror -f in --to oci://registry.test/sources --plain-http",
		"mirror --from charts.tar --to oci://registry.test/carried --plain-http",
		"fetch -f in --from later.tar --from charts.tar -d carried -o name",
	} {
		cmd := s.command(strings.Fields(args)...)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		var err error
		if peaks[args], err = peak(cmd); err != nil || peaks[args] == 0 {
			t.Errorf("%s: %v\n%.2000s", args, err, &out)
		}
	}
	info, err := os.Stat(filepath.Join(s.dir, "charts.tar"))
	if err != nil || info.Size() < int64(charts)*300<<10 {
		t.Errorf("the bundle has %v, %v", info, err)
	}
	return peaks
}

// TestCarriedMemory carries charts whose bytes a run must not keep: 200 more charts, with 59 MiB, need little more memory.
func TestCarriedMemory(t *testing.T) {
	const most, growth = 128 << 20, 32 << 20
	few, many := carriedPeaks(t, 60), carriedPeaks(t, 260)
	for args, used := range many {
		t.Logf("%s: %d MiB of memory for 60 charts, %d for 260", args, few[args]>>20, used>>20)
		if used > most*raceFactor || used-few[args] > growth*raceFactor {
			t.Errorf("%s: %d MiB of memory for 60 charts, %d for 260", args, few[args]>>20, used>>20)
		}
	}
}
