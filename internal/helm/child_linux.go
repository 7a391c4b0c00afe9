package helm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// child describes how a process of helm is isolated.
type child struct {
	// networked children use the network of this machine.
	networked bool
	// user is set for a user namespace, in which every user may make a network namespace.
	user bool
}

// children returns all kinds of children to try, the best first. Root needs no user namespace: in it, it could not read files
// of other users.
func children() []child {
	list := []child{{user: true}, {networked: true}}
	if os.Geteuid() == 0 {
		list = append([]child{{}}, list...)
	}
	return list
}

// apply makes a child the leader of its process group, which is killed with it.
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

// limitMemory limits the data of a process; 0 is no limit. A process that has already ended is no error.
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
