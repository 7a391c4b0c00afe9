package program

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTemplateInterrupted ends a run while helm renders: helm and its child processes end, too, and no file is left.
func TestTemplateInterrupted(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"template", "-f", "all.yaml"},
		{"plan", "-f", "all.yaml", "--against", "before", "--render"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "podinfo 6.5.0\n")
			release := "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: repo, namespace: apps}\nspec: {interval: 5m, url: \"http://repo.test\"}\n---\n" +
				"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: podinfo, namespace: apps}\n" +
				"spec: {interval: 5m, chart: {spec: {chart: podinfo, sourceRef: {kind: HelmRepository, name: repo}}}, values: {a: b}}\n"
			s.write("all.yaml", release)
			s.write("before/all.yaml", strings.Replace(release, "a: b", "a: c", 1))
			pipe := filepath.Join(s.dir, "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			helm := filepath.Join(t.TempDir(), "helm")
			script := "#!/bin/sh\nif [ \"$1\" = version ]; then echo v3.18.4; exit; fi\nexec 3>'" + pipe + "'\nsleep 1000 &\necho begun >&3\nwait\n"
			if err := os.WriteFile(helm, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := s.command(append(args, "--helm", helm)...)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			held, err := os.OpenFile(pipe, os.O_RDWR, 0) // which does not wait for a reader
			if err != nil {
				t.Fatal(err)
			}
			defer held.Close()
			reader, err := os.Open(pipe)
			if err != nil {
				t.Fatal(err)
			}
			defer time.AfterFunc(time.Minute, func() { _, _ = cmd.Process.Kill(), held.Close() }).Stop()
			all := bufio.NewReader(reader)
			if said, err := all.ReadString('\n'); err != nil {
				t.Fatalf("helm says %q, %v; stderr: %s", said, err, &stderr)
			}
			_ = held.Close()
			s.signal(cmd, syscall.SIGTERM)
			if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
				t.Errorf("the run ended with %v, want exit status 130; stderr: %s", err, &stderr)
			}
			defer time.AfterFunc(time.Minute, func() { _ = reader.Close() }).Stop()
			if _, err := io.ReadAll(all); err != nil { // it ends with the last writer
				t.Errorf("what helm began runs on: %v", err)
			}
			for _, entry := range cmd.Env {
				if dir, ok := strings.CutPrefix(entry, "TMPDIR="); ok {
					if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
						t.Errorf("left in the directory for temporary files: %v, %v", left, err)
					}
				}
			}
		})
	}
}
