//go:build unix

package rewrite

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/helmsrc/helmsrc/internal/file"
)

// replacesOpen reports whether a file that is open can be replaced.
const replacesOpen = true

// lock opens a file, and locks it against other runs until unlock is called. It does not wait. The lock belongs to the file that
// is open: a file that has replaced it is not locked.
func lock(path string) (f *os.File, unlock func(), err error) {
	f, err = file.Open(path)
	if err != nil {
		return nil, nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		err = ErrBusy
	case errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOLCK):
		err = nil // a file system without locks: Replace detects changes anyway
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, func() { _ = f.Close() }, nil
}
