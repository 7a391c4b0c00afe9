//go:build unix

package store

import "golang.org/x/sys/unix"

// mayWrite returns an error if files cannot be created in a directory. It creates no file.
func mayWrite(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
