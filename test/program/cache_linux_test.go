package program

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestCacheFull runs with a cache on a small disk. The run continues without it, and warns once; cached files stay usable.
//
// The disk is a file system in memory, in a mount namespace of the run. If the user must not create one, a file instead of
// the directory for temporary files prevents writes to the cache.
func TestCacheFull(t *testing.T) {
	t.Parallel()
	s := newStage(t, twoLargeCharts)
	s.write("charts.yaml", cachedCharts)
	for _, room := range []string{"16k", "96k", "500k"} {
		dir := "artifacts"
		if err := os.MkdirAll(filepath.Join(s.dir, "disk"), 0o700); err != nil {
			t.Fatal(err)
		}
		fetch := "helmsrc fetch -f charts.yaml -o name --cache-dir disk -d " + dir
		out, err := s.onDisk(room, fetch+" && rm -r "+dir+" && "+fetch+" && helmsrc cache verify --cache-dir disk")
		want := "No space left on device"
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
			t.Log("no mount namespace:", err)
			s.write("disk/content/temp", "")
			out, err = s.command("fetch", "-f", "charts.yaml", "-o", "name", "--cache-dir", "disk", "-d", dir).CombinedOutput()
			want = "cannot be used"
		}
		text := strings.ReplaceAll(string(out), "no space left on device", "No space left on device")
		if err != nil || !strings.Contains(text, "warning: ") || !strings.Contains(text, want) || strings.Contains(text, "damaged and") {
			t.Errorf("%s: %v\n%s", room, err, out)
		}
		s.checkArtifacts()
		if strings.Count(text, want) > 2 {
			t.Errorf("%s: said more than once a run\n%s", room, out)
		}
		s.remove(dir)
	}
}

// onDisk runs shell commands with a file system of a size at the directory disk. They have privileges only inside it.
func (s *stage) onDisk(size, commands string) ([]byte, error) {
	return s.apart(syscall.CLONE_NEWNS, "mount -t tmpfs -o mode=700,size="+size+" tmpfs disk || exit 99\n"+commands)
}

// apart runs shell commands as root of a user namespace, and in further namespaces. If the kernel forbids these, the error is
// EPERM or similar, or the commands exit with 99.
func (s *stage) apart(namespaces uintptr, commands string) ([]byte, error) {
	s.t.Helper()
	cmd := s.command()
	sh, err := exec.LookPath("sh")
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Path, cmd.Args, cmd.Err = sh, []string{"sh", "-ec", commands}, nil
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | namespaces,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 99 {
		err = syscall.EPERM
	}
	return out.Bytes(), err
}
