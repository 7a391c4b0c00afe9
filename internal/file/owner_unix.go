//go:build unix

package file

import (
	"io/fs"
	"os"
	"syscall"
)

// Owned reports whether a file belongs to the user of the process.
func Owned(fi fs.FileInfo) bool {
	stat, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// TempDirVariable is the environment variable that [os.TempDir] reads.
const TempDirVariable = "TMPDIR"
