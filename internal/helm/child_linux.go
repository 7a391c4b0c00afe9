package helm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// child is what a process of helm is started with.
type child struct {
	// networked is one in the network of this machine.
	networked bool
	// user gives it a namespace of users, in which everyone may have a network of their own.
	user bool
}

// children are all that may be tried, the best first. Root needs no namespace of users, in which it could not read what
// other users own.
func children() []child {
	list := []child{{user: true}, {networked: true}}
	if os.Geteuid() == 0 {
		list = append([]child{{}}, list...)
	}
	return list
}

// apply makes a child the first of a group of its own, which ends with it.
func (c child) apply(cmd *exec.Cmd) {
	a := &syscall.SysProcAttr{Setpgid: true}
	if !c.networked {
		a.Cloneflags = syscall.CLONE_NEWNET
	}
	if c.user {
		a.Cloneflags |= syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	}
	cmd.SysProcAttr = a
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
