//go:build !unix

package store

import "io/fs"

// owned is true: the directory for temporary files is the user's own.
func owned(fs.FileInfo) bool { return true }

// tempDirVariable is where [os.TempDir] has the directory from.
const tempDirVariable = "TMP"
