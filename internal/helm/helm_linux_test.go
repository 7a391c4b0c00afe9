package helm_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/helm"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// What helm is given is what the kernel grants this user.
func TestGranted(t *testing.T) {
	t.Parallel()
	tool, _ := found(t, builtHelm)
	if tool.Networked() == helmtest.Networkless() {
		t.Errorf("networked: %v", tool.Networked())
	}
}

// An ordinary user has a helm without a network, too, in a namespace of users. Without being root, this is such a user.
func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	program, err := builtHelm()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, from := range map[string]string{"helm": program, "test": self} {
		if out, err := exec.Command("cp", from, filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	temp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "test"), "-test.run=^(TestGranted|TestNetworked)$/^3?$", "-test.v", "-test.timeout=5m")
	cmd.Dir, cmd.Env = dir, []string{helmOfTest + "=" + filepath.Join(dir, "helm"), "TMPDIR=" + temp}
	if os.Geteuid() == 0 {
		const nobody = 65534
		if err := os.Chown(temp, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), "\n--- PASS: ") != 2 {
		t.Errorf("%v\n%s", err, out)
	}
}

// A program that fails without a network is asked once more, with one, however many kinds of namespaces there are.
func TestAskedTwice(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	program := filepath.Join(home, "wrapper")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho >>asked\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := helm.Find(t.Context(), helm.Options{Name: program, Home: home, Limits: helm.Limits{Time: time.Minute, Memory: 1 << 30, Output: 1 << 20}})
	want := 1
	if helmtest.Networkless() {
		want = 2
	}
	if asked, _ := os.ReadFile(filepath.Join(home, "asked")); err == nil || len(asked) != want {
		t.Errorf("%v, asked %d times", err, len(asked))
	}
}

// A helm that says that it has no memory was ended by its limit, and has rendered nothing.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for text, limit := range map[string]bool{"fatal error: runtime: out of memory": true, "mmap: cannot allocate memory": true, "Error: no such chart": false} {
		program := filepath.Join(home, "helm")
		script := "#!/bin/sh\ncase $1 in version) echo v3.18.4;; *) echo '" + text + "' >&2; exit 2;; esac\n"
		if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		tool, err := helm.Find(t.Context(), helm.Options{Name: program, Home: home, Limits: helm.Limits{Time: time.Minute, Memory: 1 << 30, Output: 1 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		var ended *helm.LimitError
		if out, err := tool.Template(t.Context(), helm.Release{Name: "a", Namespace: "a", Chart: program}); err == nil || errors.As(err, &ended) != limit {
			t.Errorf("%s: %q, %v", text, out, err)
		}
	}
}
