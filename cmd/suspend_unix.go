//go:build unix

package cmd

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stoppedWithin is how long it may take to stop. A process that no shell looks after is not stopped at all.
const stoppedWithin = 100 * time.Millisecond

// onSuspension has suspended called whenever the user puts the program aside, with Ctrl-Z, to suspend it when it is ready.
// That goes on until the process ends: once a program has subscribed to it, Go never restores the signal's default action.
func onSuspension(suspended func(suspend func())) {
	if signal.Ignored(syscall.SIGTSTP) {
		return
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTSTP)
	go func() {
		for range asked {
			suspended(suspend)
		}
	}()
}

// foreground is false of a job in the background. A terminal that no shell manages has none.
func foreground(terminal int) bool {
	group, err := unix.IoctlGetInt(terminal, unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// suspend stops the process and returns when it goes on. It sends the signal that stops background readers,
// to which this program has not subscribed. Unlike SIGSTOP that does nothing to a process that no shell could continue.
func suspend() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if syscall.Kill(syscall.Getpid(), syscall.SIGTTIN) != nil {
		return
	}
	select {
	case <-continued:
	case <-time.After(stoppedWithin):
	}
}
