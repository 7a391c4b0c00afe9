//go:build !windows

package program

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// TestSecondSignal ends a run that has begun to print but cannot continue, since there is no reader: the first signal asks it
// to finish, the second one ends it at once. The first may be SIGTERM as well as SIGINT.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	s, w := hangingCharts(t, 500) // their documents are more than a pipe holds

	cmd := s.command("fetch", "-f", "all.yaml", "-j", "1")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }).Stop()
	w.Servers["repo"].Log.Await("GET", "/podinfo-6.5.0.tgz")
	s.signal(cmd, syscall.SIGTERM)
	if _, err := io.ReadFull(stdout, make([]byte, 1)); err != nil {
		t.Fatalf("no document: %v", err)
	}
	s.signal(cmd, os.Interrupt)
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("the run ended with %v, want exit status 130", err)
	}
}

// TestHangup ends a run as SIGTERM does, without leaving a partial file. A run that nohup started continues.
func TestHangup(t *testing.T) {
	t.Parallel()
	// Under nohup a child would ignore the signal, too, unless this process takes it.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	s, w := hangingCharts(t, 1)
	cmd := s.command("fetch", "-f", "all.yaml")
	cmd.Stdout = io.Discard
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }).Stop()
	w.Servers["repo"].Log.Await("GET", "/podinfo-6.5.0.tgz")
	s.signal(cmd, syscall.SIGHUP)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("the run ended with %v, want exit status 130; stderr: %s", err, &stderr)
	}
	if left := s.leftovers(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	for _, entry := range cmd.Env {
		if dir, ok := strings.CutPrefix(entry, "TMPDIR="); ok {
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left in the directory for temporary files: %v, %v", left, err)
			}
		}
	}
}

// TestHangupIgnored starts a run with nohup: it ignores SIGHUP, and ends by another signal.
func TestHangupIgnored(t *testing.T) {
	t.Parallel()
	s, w := hangingCharts(t, 1)
	program := s.command("fetch", "-f", "all.yaml")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "trap '' HUP; exec \"$@\"", "sh", program.Path, "fetch", "-f", "all.yaml")
	cmd.Dir, cmd.Env, cmd.Stdout = program.Dir, program.Env, io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }).Stop()
	w.Servers["repo"].Log.Await("GET", "/podinfo-6.5.0.tgz")
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err == nil && !ignoresHangup(string(status)) {
		t.Error("the run no longer ignores it")
	}
	s.signal(cmd, syscall.SIGHUP)
	s.signal(cmd, syscall.SIGTERM)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("the run ended with %v, want exit status 130", err)
	}
}

// ignoresHangup reports whether a process ignores SIGHUP, from its status file of Linux.
func ignoresHangup(status string) bool {
	_, rest, found := strings.Cut(status, "SigIgn:\t")
	line, _, _ := strings.Cut(rest, "\n")
	mask, err := strconv.ParseUint(line, 16, 64)
	return found && err == nil && mask&1 != 0
}

// TestCursorComesBack ends a run that repaints rows, with one signal and with two. The terminal then has a cursor again.
func TestCursorComesBack(t *testing.T) {
	t.Parallel()
	const hidden, shown = "\x1b[?25l", "\x1b[?25h"
	for _, signals := range []int{1, 2} {
		t.Run(fmt.Sprint(signals), func(t *testing.T) {
			t.Parallel()
			s, _ := hangingCharts(t, 500)

			cmd := s.command("fetch", "-f", "all.yaml", "-j", "1")
			cmd.Env = append(cmd.Env, "TERMINAL=80x24", "TERM=xterm")
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			terminal, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }).Stop()
			var painted strings.Builder
			for one := make([]byte, 1); !strings.Contains(painted.String(), hidden); painted.Write(one) {
				if _, err := io.ReadFull(terminal, one); err != nil {
					t.Fatalf("no rows in %q", painted.String())
				}
			}
			s.signal(cmd, os.Interrupt)
			if signals == 2 { // the run waits for a reader of its documents
				if _, err := io.ReadFull(stdout, make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
				s.signal(cmd, os.Interrupt)
			} else {
				go func() { _, _ = io.Copy(io.Discard, stdout) }()
			}
			rest, err := io.ReadAll(terminal)
			if err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // how it ends is TestSecondSignal's
			all := painted.String() + string(rest)
			if strings.LastIndex(all, shown) < strings.LastIndex(all, hidden) {
				t.Errorf("the cursor is hidden after %q", all)
			}
		})
	}
}

// hangingCharts returns a stage with the manifests of some charts, whose repository never sends an archive.
func hangingCharts(t *testing.T, n int) (*stage, *helmtest.World) {
	t.Helper()
	s := &stage{t: t, dir: t.TempDir()}
	s.write("repo/charts", "podinfo 6.5.0\n")
	s.write("repo/faults.json", `{"/podinfo-6.5.0.tgz": {"hang": true}}`)
	w := helmtest.NewWorld(nil)
	t.Cleanup(w.Close)
	if err := w.Start("repo", filepath.Join(s.dir, "repo")); err != nil {
		t.Fatal(err)
	}
	s.remove("repo")
	s.write(stateDir+"/network", w.Network.String())
	s.write("all.yaml", manyCharts(n))
	return s, w
}

func (s *stage) signal(cmd *exec.Cmd, sig os.Signal) {
	s.t.Helper()
	if err := cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

func manyCharts(n int) string {
	var b strings.Builder
	b.WriteString(`
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: repo}
spec: {interval: 5m, url: "http://repo.test"}
`)
	for i := range n {
		fmt.Fprintf(&b, `---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: chart-%d}
spec: {interval: 5m, chart: podinfo, sourceRef: {kind: HelmRepository, name: repo}}
`, i)
	}
	return b.String()
}

// TestPipeInterrupted ends runs that wait for input from a pipe.
func TestPipeInterrupted(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"fetch", "-f", "pipe"},
		{"validate", "-f", "pipe"},
		{"validate", "-f", "pipe", "--exit-zero"},
		{"tree", "-f", "pipe", "--exit-zero"},
		{"status", "-f", "pipe", "--exit-zero"},
		{"fetch", "-f", "all.yaml", "--config", "pipe"},
		{"fetch", "-f", "all.yaml", "--keyring", "pipe"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			s := &stage{t: t, dir: t.TempDir()}
			s.write(stateDir+"/network", "")
			s.write("all.yaml", manyCharts(1))
			pipe := filepath.Join(s.dir, "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := s.command(args...)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }).Stop()
			writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for its reader
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			s.signal(cmd, os.Interrupt)
			if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
				t.Errorf("the run ended with %v, want exit status 130", err)
			}
			if !strings.HasSuffix(stderr.String(), "interrupted\n") {
				t.Errorf("it says %q", stderr.String())
			}
		})
	}
}

// TestValidateInterrupted ends a validate that is printing findings: it obeys SIGTERM as soon as the reader continues, and its
// exit code reports an incomplete run, also with fixes and reports.
func TestValidateInterrupted(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--fix"}, {"--exit-zero"}, {"--report", "sarif=report.sarif"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			s := &stage{t: t, dir: t.TempDir()}
			s.write(stateDir+"/network", "")
			var b strings.Builder
			for i := range 2000 { // their findings are more than a pipe holds
				fmt.Fprintf(&b, "---\n{apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {name: repo-%d}, spec: {interval: %dq, url: 'http://repo.test'}}\n", i, i)
			}
			s.write("all.yaml", b.String())
			cmd := s.command(append([]string{"validate", "-f", "all.yaml"}, args...)...)
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }).Stop()
			if _, err := io.ReadFull(stderr, make([]byte, 1)); err != nil {
				t.Fatalf("no finding: %v", err)
			}
			s.signal(cmd, syscall.SIGTERM)
			said, err := io.ReadAll(stderr)
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
				t.Errorf("the run ended with %v, want exit status 130", err)
			}
			if !strings.HasSuffix(string(said), "error: the run is not complete: interrupted\n") {
				t.Errorf("it ends with %q", said[max(0, len(said)-200):])
			}
		})
	}
}

// TestSuspended suspends a run that repaints rows, as Ctrl-Z does. The run stops, and hides the cursor again when it
// continues, which means that it was shown before. TestPutAside checks the order.
func TestSuspended(t *testing.T) {
	t.Parallel()
	const hidden = "\x1b[?25l"
	s, _ := hangingCharts(t, 1)

	cmd := s.command("fetch", "-f", "all.yaml")
	cmd.Env = append(cmd.Env, "TERMINAL=80x24", "TERM=xterm")
	cmd.Stdout = io.Discard
	// The process needs its own group: without a shell that manages it, it cannot be suspended.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	terminal, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }).Stop()
	untilHidden := func() {
		t.Helper()
		var painted strings.Builder
		for one := make([]byte, 1); !strings.HasSuffix(painted.String(), hidden); painted.Write(one) {
			if _, err := io.ReadFull(terminal, one); err != nil {
				t.Fatalf("the cursor is not hidden after %q", painted.String())
			}
		}
	}
	for range 2 {
		untilHidden()
		s.signal(cmd, syscall.SIGTSTP)
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
			t.Fatalf("not stopped: %v, %v", status, err)
		}
		s.signal(cmd, syscall.SIGCONT)
	}
	untilHidden()
	s.signal(cmd, os.Interrupt)
	if _, err := io.Copy(io.Discard, terminal); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("the run ended with %v, want exit status 130", err)
	}
}
