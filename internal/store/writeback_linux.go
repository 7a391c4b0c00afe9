package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// startWriteback asks the system to begin writing a part of a file to disk, so
// that the sync before the rename finds little left to wait for. It promises
// nothing, so its failure says nothing.
func startWriteback(f *os.File, offset, length int64) {
	_ = unix.SyncFileRange(int(f.Fd()), offset, length, unix.SYNC_FILE_RANGE_WRITE)
}
