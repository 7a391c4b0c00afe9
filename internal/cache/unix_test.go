//go:build unix

package cache_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/file"
)

// TestReadOnly serves the existing entries, and warns once that the cache cannot be written. For root no directory is
// read-only, so files take the place of directories.
func TestReadOnly(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	d := keep(c, alice, "archive")
	blobs := filepath.Dir(filepath.Dir(w.files("blobs")[0]))
	for i := range 256 {
		dir := filepath.Join(blobs, fmt.Sprintf("%02x", i))
		if err := os.WriteFile(dir, nil, 0o600); err != nil && !errors.Is(err, syscall.EISDIR) {
			t.Fatal(err)
		}
	}
	keep(c, alice, "another")
	keep(c, alice, "a third")
	w.warned("cannot write to the cache in " + w.dir)
	if _, ok := load(c, alice, d); !ok {
		t.Error("what is there is not served")
	}
}

// withFiles calls f while the process can open only a few more files.
func withFiles(t *testing.T, more int, f func()) {
	t.Helper()
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	null, failed := os.Open(os.DevNull)
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = uint64(null.Fd()) + uint64(more)
	if err := errors.Join(null.Close(), syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few)); err != nil {
		t.Fatal(err)
	}
	f()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
}

// TestTooManyFiles keeps entries that cannot be opened because the process has too many open files.
func TestTooManyFiles(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	d := keep(c, alice, "archive")
	withFiles(t, 0, func() {
		if _, ok := load(c, alice, d); ok {
			t.Error("served without a free file descriptor")
		}
	})
	w.warned("cannot be read and is not used: too many open files")
	if got, ok := load(c, alice, d); !ok || got != "archive" {
		t.Error("the entry is gone")
	}
}

// TestFewFiles lists and prunes a cache whose directories are more than the process can open. Those of answers stay open.
func TestFewFiles(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	for i := range 100 {
		keep(c, alice, fmt.Sprint(i))
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = w.open()
	withFiles(t, 150, func() {
		if entries, err := c.Entries(); len(entries) < 200 || err != nil {
			t.Errorf("%d entries, %v", len(entries), err)
		}
		if _, err := c.Prune(func(*cache.Entry) bool { return true }); err != nil {
			t.Error(err)
		}
	})
	if left := append(w.files("answers"), w.files("blobs")...); len(left) > 0 {
		t.Errorf("%d files are left", len(left))
	}
}

// TestAnotherUser serves nothing from files of another user, and does not remove them. Only root can change the owner of
// a file; other users test with files of root, whose owner is checked in the same way.
func TestAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		fi, err := os.Stat("/")
		if err != nil || file.Owned(fi) {
			t.Errorf("the root directory belongs to this user (%v)", err)
		}
		return
	}
	w := newWorld(t)
	c := w.open()
	d := keep(c, alice, "archive")
	blob := w.files("blobs")[0]
	if err := os.Chown(blob, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if _, ok := load(c, alice, d); ok {
		t.Error("bytes of another user are served")
	}
	w.warned("it is not a file of this user")
	keep(c, alice, "archive")
	w.warned("cannot write to the cache")
	for _, f := range w.files("answers") {
		if err := os.Chown(f, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := load(c, alice, d); ok {
		t.Error("by an answer of another user")
	}
	before := len(w.files("answers")) + len(w.files("blobs"))
	if _, err := c.Prune(func(*cache.Entry) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if after := len(w.files("answers")) + len(w.files("blobs")); after != before {
		t.Errorf("%d of %d files of another user are left", after, before)
	}
	if err := os.Chown(cache.Path(w.dir), 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if _, err := cache.Open(w.dir, w.options()); err == nil {
		t.Error("the directory of another user is used")
	}
}

// TestDirectoriesStayOpen shows that a used directory is not opened again: it serves its files when its path leads to another one.
func TestDirectoriesStayOpen(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	d := keep(c, alice, "archive")
	for _, part := range []string{"blobs", "answers"} {
		shard := filepath.Dir(w.files(part)[0])
		if err := os.Rename(shard, shard+".moved"); err != nil {
			t.Fatal(err)
		}
	}
	if text, ok := load(c, alice, d); !ok || text != "archive" {
		t.Errorf("%q, %v", text, ok)
	}
}
