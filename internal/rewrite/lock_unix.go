//go:build unix

package rewrite

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const locks = true

// lock keeps other runs off the file until it is closed. It does not wait.
func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrBusy
	}
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOLCK) {
		return nil // a file system without locks: what changed is found out all the same
	}
	return err
}
