//go:build !unix

package file

import "io/fs"

// Owned is true: the directories for caches and temporary files are the user's own.
func Owned(fs.FileInfo) bool { return true }

// TempDirVariable is where [os.TempDir] has the directory from.
const TempDirVariable = "TMP"
