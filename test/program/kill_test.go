package program

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// kills is the number of moments at which TestKill, TestKillLock and TestKillMerge kill a run.
const kills = 50

// TestKill kills runs at any moment. The artifacts directory must then be complete, commands that only read it must succeed,
// and the next run must work as usual.
func TestKill(t *testing.T) {
	t.Parallel()
	s := newStage(t, "podinfo 6.5.0 random=podinfo/noise:300000\npodinfo 6.6.0 random=podinfo/noise:300000\n")
	manifest := func(version string) string {
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
		return file
	}
	versions := []string{manifest("6.5.0"), manifest("6.6.0")}

	start := time.Now()
	s.run("fetch", "-f", versions[0])
	whole := time.Since(start)
	for i := range kills {
		if i%10 == 0 {
			s.remove("artifacts")
		}
		cmd := s.command("fetch", "-f", versions[i%2])
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Somewhere within the time that a run takes; a little later, for it may take longer this time.
		kill := time.AfterFunc(whole*time.Duration(i)/(kills*4/5), func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		kill.Stop()
		s.checkArtifacts()
		s.run("status", "-f", versions[0])
		if i%5 == 4 {
			s.run("fetch", "-f", versions[i%2])
			s.checkArtifacts()
		}
	}
	s.run("fetch", "-f", versions[0])
	s.run("cache", "verify") // all runs use one cache
	if left := s.leftovers(); left != nil {
		t.Errorf("after a whole run there are %q", left)
	}
}

// TestKillScratch kills runs that have files in the system's temporary directory. The next run removes these files, but not
// those of a run in progress.
func TestKillScratch(t *testing.T) {
	t.Parallel()
	s := newStage(t, "podinfo 6.5.0\n")
	s.write("git/app/Chart.yaml", "{apiVersion: v2, name: app, version: 1.0.0}\n")
	s.write("git/faults.json", `{"POST /charts.git/git-upload-pack": [{}, {"hang": true}, {}, {"hang": true}]}`)
	if err := s.world.Start("git", filepath.Join(s.dir, "git")); err != nil {
		t.Fatal(err)
	}
	s.write(stateDir+"/network", s.world.Network.String())
	s.write("git.yaml", `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: git}
spec: {interval: 5m, url: "http://git.test/charts.git", ref: {branch: main}}
`)
	temp := t.TempDir()
	left := func() []string {
		entries, err := os.ReadDir(temp)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	start := func() *exec.Cmd {
		before := len(s.world.Servers["git"].Log.All())
		cmd := s.command("fetch", "-f", "git.yaml", "-d", rand.Text())
		cmd.Env = append(cmd.Env, "TMPDIR="+temp)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The references are requested, and then the files, which the server delays.
		s.world.Servers["git"].Log.AwaitCount(before + 3)
		return cmd
	}
	killed := start()
	_ = killed.Process.Kill()
	_ = killed.Wait()
	if len(left()) == 0 {
		t.Fatal("the killed run had nothing in the temporary directory")
	}
	abandoned := left()
	living := start()
	now := left()
	for _, name := range abandoned {
		if slices.Contains(now, name) {
			t.Errorf("%s is still there", name)
		}
	}
	whole := s.command("fetch", "-f", "git.yaml")
	whole.Env = append(whole.Env, "TMPDIR="+temp)
	if out, err := whole.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if got := left(); !slices.Equal(got, now) {
		t.Errorf("beside a living run there are %q, want %q", got, now)
	}
	_ = living.Process.Kill()
	_ = living.Wait()
	s.write("chart.yaml", `
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: podinfo}
spec: {interval: 5m, url: "http://repo.test"}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: podinfo}
spec: {interval: 5m, chart: podinfo, version: 6.5.0, sourceRef: {kind: HelmRepository, name: podinfo}}
`)
	other := s.command("lock", "-f", "chart.yaml")
	other.Env = append(other.Env, "TMPDIR="+temp)
	if out, err := other.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if got := left(); len(got) > 0 {
		t.Errorf("after another command there are %q", got)
	}
}

// TestKillEdits kills runs that write to a working tree, as soon as they begin. Every file has its old or its new content, and
// the next complete run removes the files that the killed run left.
func TestKillEdits(t *testing.T) {
	t.Parallel()
	const repository = `
apiVersion: source.toolkit.fluxcd.io/%s
kind: HelmRepository
metadata: {name: podinfo%d}
spec: {interval: 5m, url: "http://repo.test%s"}
---
apiVersion: source.toolkit.fluxcd.io/%[1]s
kind: HelmChart
metadata: {name: podinfo%[2]d}
spec: {interval: 5m, chart: podinfo, version: 6.5.0, sourceRef: {kind: HelmRepository, name: podinfo%[2]d}}
`
	for _, tt := range []struct {
		version, path string
		args          []string
	}{
		{"v1beta2", "", []string{"migrate", "-f", "tree", "--prove=false"}},
		{"v1", "", []string{"update", "-f", "tree", "--level", "minor"}},
		{"v1", "/index.yaml", []string{"validate", "-f", "tree", "--fix"}},
		{"v1", "", []string{"lock", "-f", "tree", "--lock-file", "tree/helmsrc.lock"}},
		{"v1", "", []string{"fetch", "-f", "tree", "--flat", "tree"}},
		{"v1", "", []string{"resolve", "-f", "tree", "--report", "sarif=tree/report.sarif"}},
	} {
		t.Run(tt.args[0], func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "podinfo 6.5.0\npodinfo 6.6.0\n")
			before := map[string]string{}
			for i := range 20 {
				before[fmt.Sprintf("tree/%d.yaml", i)] = fmt.Sprintf(repository, tt.version, i, tt.path)
			}
			reset := func() {
				s.t.Helper()
				s.remove("tree/helmsrc.lock")
				s.remove("tree/podinfo-6.5.0.tgz")
				s.remove("tree/report.sarif")
				for name, text := range before {
					s.write(name, text)
				}
			}
			reset()
			s.run(tt.args...)
			after := s.texts("tree")
			if maps.Equal(after, before) {
				t.Fatal("the run changes nothing")
			}
			tree := filepath.Join(s.dir, "tree")
			for n := 0; len(temporary(t, tree)) == 0; n++ {
				if n == 2*kills {
					t.Fatal("no run was killed while it wrote")
				}
				reset()
				cmd := s.command(tt.args...)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				over := make(chan error, 1)
				go func() { over <- cmd.Wait() }()
				for running := true; running; {
					select {
					case <-over:
						running = false
					default:
						if len(temporary(t, tree)) > 0 {
							_ = cmd.Process.Kill()
						}
					}
				}
				for name, text := range s.texts("tree") {
					if text != before[name] && text != after[name] {
						t.Fatalf("%s is\n%s", name, text)
					}
				}
			}
			reset()
			s.run(tt.args...)
			if left := temporary(t, tree); len(left) > 0 {
				t.Errorf("after a whole run there are %q", left)
			}
			if got := s.texts("tree"); !maps.Equal(got, after) {
				t.Errorf("after a whole run the files are %q, want %q", got, after)
			}
		})
	}
}

// temporary returns the temporary files of runs in a working tree.
func temporary(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, ".helmsrc-*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// texts returns the texts of the files in a directory, without temporary files of runs.
func (s *stage) texts(dir string) map[string]string {
	s.t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.dir, dir))
	if err != nil {
		s.t.Fatal(err)
	}
	texts := map[string]string{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".helmsrc-") {
			continue
		}
		name := dir + "/" + e.Name()
		text, err := os.ReadFile(filepath.Join(s.dir, name))
		if err != nil {
			s.t.Fatal(err)
		}
		texts[name] = string(text)
	}
	return texts
}

// stage is a directory with a server, in which a test runs the program.
type stage struct {
	t     *testing.T
	dir   string
	world *helmtest.World
}

func newStage(t *testing.T, charts string) *stage {
	t.Helper()
	s := &stage{t: t, dir: t.TempDir()}
	s.write("repo/charts", charts)
	w := helmtest.NewWorld(nil)
	s.world = w
	t.Cleanup(w.Close)
	if err := w.Start("repo", filepath.Join(s.dir, "repo")); err != nil {
		t.Fatal(err)
	}
	s.remove("repo")
	s.write(stateDir+"/network", w.Network.String())
	return s
}

func (s *stage) write(name, content string) {
	s.t.Helper()
	if err := writeFile(filepath.Join(s.dir, name), []byte(content)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) remove(name string) {
	s.t.Helper()
	if err := os.RemoveAll(filepath.Join(s.dir, name)); err != nil {
		s.t.Fatal(err)
	}
}

// command returns a command of the program, which TestMain added to PATH.
func (s *stage) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.t.Context(), "helmsrc", args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"WORK=" + s.dir, "NOW=" + scriptTime, "HOME=" + s.dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + s.t.TempDir()}
	return cmd
}

// run requires exit code 0. It also accepts 1 of status, which reports objects that are not ready.
func (s *stage) run(args ...string) {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	var exit *exec.ExitError
	if args[0] == "status" && errors.As(err, &exit) && exit.ExitCode() == 1 {
		return
	}
	if err != nil {
		s.t.Fatalf("helmsrc %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

var indexName = regexp.MustCompile(`^index-([0-9a-f]{64})\.yaml$`)

// checkArtifacts reads every file with the name of an artifact, and every link.
func (s *stage) checkArtifacts() {
	s.t.Helper()
	s.walk(func(name string, d fs.DirEntry) {
		base := filepath.Base(name)
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			if _, err := os.Stat(name); err != nil {
				s.t.Errorf("dangling link: %v", err)
			}
		case indexName.MatchString(base):
			b, err := os.ReadFile(name)
			if err != nil || fmt.Sprintf("%x", sha256.Sum256(b)) != indexName.FindStringSubmatch(base)[1] {
				s.t.Errorf("%s is not what its name says (%v)", name, err)
			}
		case strings.HasSuffix(base, ".tgz"):
			b, err := os.ReadFile(name)
			if err != nil {
				s.t.Error(err)
			}
			if _, err := helmtest.EntryNames(b); err != nil {
				s.t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// leftovers returns the files that belong to no object.
func (s *stage) leftovers() []string {
	var list []string
	s.walk(func(name string, d fs.DirEntry) {
		base := filepath.Base(name)
		known := d.Type()&fs.ModeSymlink != 0 || indexName.MatchString(base) ||
			strings.HasSuffix(base, ".tgz") || strings.HasSuffix(base, ".lock") ||
			strings.Contains(name, ".helmsrc") && strings.HasSuffix(base, ".json")
		if !known {
			list = append(list, name)
		}
	})
	return list
}

func (s *stage) walk(f func(name string, d fs.DirEntry)) {
	err := filepath.WalkDir(filepath.Join(s.dir, "artifacts"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f(name, d)
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Error(err)
	}
}

// TestKillBundle kills runs of bundle at any moment. The file is then missing or complete; the next run removes temporary
// files beside it.
func TestKillBundle(t *testing.T) {
	t.Parallel()
	s := newStage(t, "podinfo 6.5.0 random=podinfo/noise:300000\n")
	s.write("chart.yaml", `
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: podinfo}
spec: {interval: 5m, url: "http://repo.test"}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: podinfo}
spec: {interval: 5m, chart: podinfo, version: 6.5.0, sourceRef: {kind: HelmRepository, name: podinfo}}
`)
	s.run("lock", "-f", "chart.yaml")
	start := time.Now()
	s.run("bundle", "-f", "chart.yaml", "-o", "whole.tar")
	whole := time.Since(start)
	want, err := os.ReadFile(filepath.Join(s.dir, "whole.tar"))
	if err != nil {
		t.Fatal(err)
	}
	const moments = 30
	for i := range moments {
		s.remove("charts.tar")
		cmd := s.command("bundle", "-f", "chart.yaml", "-o", "charts.tar")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(whole*time.Duration(i)/(moments*4/5), func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		kill.Stop()
		got, err := os.ReadFile(filepath.Join(s.dir, "charts.tar"))
		if err == nil && string(got) != string(want) || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after %d of %d: %d of %d bytes, %v", i, moments, len(got), len(want), err)
		}
	}
	s.run("bundle", "-f", "chart.yaml", "-o", "charts.tar")
	left, err := filepath.Glob(filepath.Join(s.dir, ".helmsrc-*"))
	if err != nil || left != nil {
		t.Errorf("beside the bundle: %q, %v", left, err)
	}
}
