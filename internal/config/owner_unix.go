//go:build unix

package config

import (
	"io/fs"
	"syscall"
)

// ownerOf is the user that a file belongs to, -1 if that is not known.
func ownerOf(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}
