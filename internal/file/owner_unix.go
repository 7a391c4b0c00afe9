//go:build unix

package file

import (
	"io/fs"
	"os"
	"syscall"
)

// Owned reports whether a file belongs to the user that the program runs as.
func Owned(fi fs.FileInfo) bool {
	stat, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// TempDirVariable is where [os.TempDir] has the directory from.
const TempDirVariable = "TMPDIR"
