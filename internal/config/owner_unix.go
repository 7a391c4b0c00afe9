//go:build unix

package config

import (
	"io/fs"
	"syscall"
)

// ownerOf returns the user that owns a file, -1 if it is unknown.
func ownerOf(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}
