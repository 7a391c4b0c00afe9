//go:build unix

package store

import (
	"io/fs"
	"os"
	"syscall"
)

// owned reports whether a file belongs to the user that the program runs as.
func owned(fi fs.FileInfo) bool {
	stat, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// tempDirVariable is where [os.TempDir] has the directory from.
const tempDirVariable = "TMPDIR"
