package helm

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// alone makes a child the first of a group of its own, which ends with it.
func alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// limitMemory bounds the data of a process; 0 is no bound. A process that has ended needs none.
func limitMemory(pid int, bytes int64) error {
	if bytes <= 0 {
		return nil
	}
	err := unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: uint64(bytes), Max: uint64(bytes)}, nil)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("limit its memory: %w", err)
	}
	return nil
}
