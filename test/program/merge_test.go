package program

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// shards fetches charts in two shards, and all of them at once.
func shards(s *stage) {
	var b strings.Builder
	b.WriteString("apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: podinfo}\nspec: {interval: 5m, url: \"http://repo.test\"}\n")
	for i := range 12 {
		fmt.Fprintf(&b, "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmChart\nmetadata: {name: podinfo-%d}\nspec: {interval: 5m, chart: podinfo, version: 6.5.0, sourceRef: {kind: HelmRepository, name: podinfo}}\n", i)
	}
	s.write("all.yaml", b.String())
	s.run("fetch", "-f", "all.yaml", "-d", "p0", "--shard", "0/2")
	s.run("fetch", "-f", "all.yaml", "-d", "p1", "--shard", "1/2")
	s.run("fetch", "-f", "all.yaml", "-d", "whole")
}

// files returns the contents of an artifacts directory, without locks.
func (s *stage) files(dir string) map[string]string {
	s.t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(filepath.Join(s.dir, dir)), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, ".lock") {
			return err
		}
		data, err := os.ReadFile(filepath.Join(s.dir, dir, name))
		files[name] = string(data)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return files
}

func (s *stage) sameFiles(got, want string) {
	s.t.Helper()
	a, b := s.files(got), s.files(want)
	for name, text := range b {
		if a[name] != text {
			s.t.Errorf("%s of %s is not that of %s", name, got, want)
		}
	}
	if len(a) != len(b) {
		s.t.Errorf("%s has %d files, %s %d", got, len(a), want, len(b))
	}
}

// TestKillMerge kills merges at any moment. Artifacts are then complete, the shards do not change, and the next merge
// completes the killed one.
func TestKillMerge(t *testing.T) {
	t.Parallel()
	s := newStage(t, "podinfo 6.5.0 random=podinfo/noise:300000\n")
	shards(s)
	start := time.Now()
	s.run("merge", "p0", "p1", "-d", "first")
	whole := time.Since(start)
	for i := range kills {
		if i%8 == 0 {
			s.remove("artifacts")
		}
		cmd := s.command("merge", "p0", "p1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(whole*time.Duration(i)/(kills*4/5), func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		kill.Stop()
		if _, err := os.Stat(filepath.Join(s.dir, "artifacts")); err == nil {
			s.checkArtifacts()
			s.run("status", "--allow-empty")
		}
	}
	s.run("merge", "p0", "p1")
	s.sameFiles("artifacts", "whole")
	s.sameFiles("first", "whole")
}

// TestMergeTogether merges into a directory that other runs write to. All of them succeed.
func TestMergeTogether(t *testing.T) {
	t.Parallel()
	s := newStage(t, "podinfo 6.5.0 random=podinfo/noise:300000\n")
	shards(s)
	var running sync.WaitGroup
	for _, args := range [][]string{
		{"merge", "p0", "p1"}, {"merge", "p1", "p0"}, {"fetch", "-f", "all.yaml", "--refresh"}, {"merge", "p0", "p1", "-d", "other"},
	} {
		running.Go(func() {
			if out, err := s.command(args...).CombinedOutput(); err != nil {
				t.Errorf("helmsrc %s: %v\n%s", strings.Join(args, " "), err, out)
			}
		})
	}
	running.Wait()
	s.sameFiles("artifacts", "whole")
	s.sameFiles("other", "whole")
}
