//go:build unix

package cmd

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stoppedWithin is the longest time until the process stops. A process without a shell that manages it is not stopped at all.
const stoppedWithin = 100 * time.Millisecond

// onSuspension calls suspended whenever the user presses Ctrl-Z. The callee calls suspend when it is ready to stop. The
// subscription lasts until the process ends: Go never restores the default action of a signal once a program subscribed to it.
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

// foreground reports whether the process is in the foreground of a terminal. It returns true if no shell manages the terminal.
func foreground(terminal int) bool {
	group, err := unix.IoctlGetInt(terminal, unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// suspend stops the process and returns when the process continues. It sends SIGTTIN, to which this program has not
// subscribed. Unlike SIGSTOP, SIGTTIN does nothing to a process that no shell could continue.
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
