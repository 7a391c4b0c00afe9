package helm

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// alone makes a child the first of a group of its own, which ends with it.
func alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// limitMemory bounds the data of a process. Where the system refuses, the child's own limit remains.
func limitMemory(pid int, bytes int64) {
	if bytes > 0 {
		_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: uint64(bytes), Max: uint64(bytes)}, nil)
	}
}
