package helmtest

import (
	"os/exec"
	"syscall"
)

// Networkless reports whether the kernel can give a process of this user a separate network.
func Networkless() bool {
	for _, flags := range []uintptr{syscall.CLONE_NEWNET, syscall.CLONE_NEWNET | syscall.CLONE_NEWUSER} {
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		if cmd.Run() == nil {
			return true
		}
	}
	return false
}
