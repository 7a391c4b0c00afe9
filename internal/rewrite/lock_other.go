//go:build !unix

package rewrite

import "os"

const locks = false

// lock does nothing here. What changed is found out all the same.
func lock(*os.File) error { return nil }
