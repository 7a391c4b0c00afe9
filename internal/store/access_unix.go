//go:build unix

package store

import "golang.org/x/sys/unix"

// mayWrite asks whether files may be made in a directory, without making one.
func mayWrite(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
