package cache

import "io/fs"

// Owned is owned, for the tests.
func Owned(fi fs.FileInfo) bool { return owned(fi) }
