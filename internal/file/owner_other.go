//go:build !unix

package file

import "io/fs"

// Owned returns true: the directories for caches and temporary files belong to the user.
func Owned(fs.FileInfo) bool { return true }

// TempDirVariable is the environment variable that [os.TempDir] reads.
const TempDirVariable = "TMP"
