package helm_test

import (
	"context"
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

// helm gets the isolation that the kernel grants this user.
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

// A helm that was ended by a limit has rendered nothing, whatever it printed.
func TestEnded(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"echo 'fatal error: runtime: out of memory' >&2; exit 2": "it needed more than 1024 MiB of memory",
		"echo 'mmap: cannot allocate memory' >&2; exit 2":        "it needed more than 1024 MiB of memory",
		"echo 'Error: no such chart' >&2; exit 2":                "",
		"echo a: b; kill -SEGV $$":                               "it crashed",
		"echo a: b; exec sleep 1000":                             "it did not finish",
		"yes":                                                    "it printed more than 1 MiB",
	} {
		limits := helm.Limits{Time: time.Minute, Memory: 1 << 30, Output: 1 << 20}
		if strings.Contains(script, "sleep") {
			limits.Time = 50 * time.Millisecond
		}
		tool, program := scripted(t, script, limits)
		var ended *helm.LimitError
		out, err := tool.Template(t.Context(), helm.Release{Name: "a", Namespace: "a", Chart: program})
		if limited := errors.As(err, &ended); err == nil || limited != (want != "") || limited && !strings.Contains(strings.TrimPrefix(ended.Text, "helm was stopped: "), want) {
			t.Errorf("%s: %q, %v", script, out, err)
		}
	}
}

// The output of helm is read up to the limit, and not a byte more.
func TestPrinted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"12345": "12345", "123456": ""} {
		tool, program := scripted(t, "printf "+text, helm.Limits{Time: time.Minute, Output: 5})
		out, err := tool.Template(t.Context(), helm.Release{Name: "a", Namespace: "a", Chart: program})
		if string(out) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", text, out, err)
		}
	}
}

// A program that is not a helm of a known version is refused with its version, and a missing program with advice.
func TestRefusedPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := filepath.Join(dir, "program")
	find := func(o helm.Options) error {
		o.Home, o.Limits = t.TempDir(), helm.Limits{Time: time.Minute, Output: 1 << 20}
		_, err := helm.Find(t.Context(), o)
		return err
	}
	for script, want := range map[string]string{
		"echo v2.17.0": "its version is v2.17.0", "echo v5.0.0": "its version is v5.0.0", "echo hello": "it does not answer as helm does", "echo v3": "it does not answer as helm does",
		"echo v3.18.4 x": "it does not answer as helm does", "exit 1": "it does not report its version: exit status 1",
		"echo v3.18": "", "echo v4.0.0-rc.1+g123": "",
	} {
		if err := os.WriteFile(at, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		err := find(helm.Options{Name: at})
		if unknown, ok := errors.AsType[*helm.UnusableError](err); ok != (want != "") || ok && err.Error() != at+" cannot be used: "+want || ok && unknown.Hint() == "" || !ok && err != nil {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
	}
	if err := os.Rename(at, filepath.Join(dir, "helm")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "helm"), []byte("#!/bin/sh\necho v3.1.2\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		o    helm.Options
		want string
	}{
		{helm.Options{Name: at}, at + " is not a program that can be run"},
		{helm.Options{Path: ""}, "helm is not installed, and is needed to render charts"},
		{helm.Options{Path: "." + string(filepath.ListSeparator) + t.TempDir()}, "helm is not installed, and is needed to render charts"},
		{helm.Options{Path: "." + string(filepath.ListSeparator) + dir}, ""},
	} {
		err := find(test.o)
		if missing, ok := errors.AsType[*helm.UnusableError](err); ok != (test.want != "") || ok && (err.Error() != test.want || missing.Hint() == "") {
			t.Errorf("%+v: %v, want %q", test.o, err, test.want)
		}
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the run ends"))
	if _, err := helm.Find(ended, helm.Options{Path: dir, Home: dir}); err == nil || err.Error() != "the run ends" {
		t.Errorf("error %v", err)
	}
}

// A run that is interrupted while helm renders ends with its cause.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "begun")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	tool, program := scripted(t, "echo begun >'"+pipe+"'; exec sleep 1000", helm.Limits{Time: time.Hour, Memory: 1 << 30, Output: 1 << 20})
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the run ends")
	go func() {
		_, _ = os.ReadFile(pipe) // waits for helm
		cancel(cause)
	}()
	if out, err := tool.Template(ctx, helm.Release{Name: "a", Namespace: "a", Chart: program}); !errors.Is(err, cause) {
		t.Errorf("%q, %v", out, err)
	}
}

// scripted returns a helm that reports its version, and otherwise runs a script.
func scripted(t *testing.T, script string, limits helm.Limits) (tool *helm.Tool, program string) {
	t.Helper()
	home := t.TempDir()
	program = filepath.Join(home, "helm")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nif [ \"$1\" = version ]; then echo v3.18.4; exit; fi\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	tool, err := helm.Find(t.Context(), helm.Options{Name: program, Home: home, Path: os.Getenv("PATH"), Keep: []string{"PATH=" + os.Getenv("PATH")}, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	return tool, program
}
