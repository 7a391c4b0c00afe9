package rewrite

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/windows"

	"github.com/helmsrc/helmsrc/internal/file"
)

// replacesOpen reports whether a file that is open can be replaced.
const replacesOpen = false

// lock opens a file, and locks it against other runs until unlock is called. It does not wait. The lock is a named mutex that
// exists until the process closes it: a lock of the file would end when the file is closed, which is before it is replaced.
func lock(path string) (f *os.File, unlock func(), err error) {
	name, err := windows.UTF16PtrFromString(fmt.Sprintf(`Global\helmsrc-%x`, sha256.Sum256([]byte(strings.ToLower(path)))))
	if err != nil {
		return nil, nil, err
	}
	held, err := windows.CreateMutex(nil, false, name)
	if errors.Is(err, windows.ERROR_ALREADY_EXISTS) {
		return nil, nil, errors.Join(ErrBusy, windows.CloseHandle(held))
	}
	if err != nil {
		return nil, nil, os.NewSyscallError("CreateMutex", err)
	}
	f, err = file.Open(path)
	if err != nil {
		return nil, nil, errors.Join(err, windows.CloseHandle(held))
	}
	return f, func() { _, _ = f.Close(), windows.CloseHandle(held) }, nil
}
