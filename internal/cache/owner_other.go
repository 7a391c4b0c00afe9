//go:build !unix

package cache

import "io/fs"

// owned is true: the directory for caches is the user's own.
func owned(fs.FileInfo) bool { return true }
