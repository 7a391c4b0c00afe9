package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/helmsrc/helmsrc/internal/lock"
)

func entry(name string) lock.Entry {
	return lock.Entry{Object: "HelmChart/apps/" + name, SourceKind: "HelmRepository", Chart: name, Version: "1.0.0", Digest: "sha256:" + strings.Repeat("0", 64)}
}

// TestChange runs many writers at once: the file is created once, and no entry is lost.
func TestChange(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), lock.FileName)
	const writers = 20
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			if _, err := Change(t.Context(), name, func(l *lock.Lock) { l.Put(entry(fmt.Sprint("chart-", i))) }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	l, err := Read(name)
	if err != nil || len(l.Entries()) != writers {
		t.Fatalf("%v, %d entries, want %d", err, len(l.Entries()), writers)
	}
	before, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := Change(t.Context(), name, func(l *lock.Lock) { l.Put(entry("chart-0")) })
	after, failed := os.Stat(name)
	if changed || err != nil || failed != nil || !os.SameFile(before, after) {
		t.Errorf("what stays is written: %v, %v, %v", changed, err, failed)
	}
	if left, _ := os.ReadDir(filepath.Dir(name)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 100<<20); err != nil {
		t.Fatal(err)
	}
	conflict := filepath.Join(dir, "conflict")
	if err := os.WriteFile(conflict, []byte("apiVersion: helmsrc.dev/v1alpha1\nkind: Lock\n<<<<<<< HEAD\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(dir, "kept")
	if err := os.WriteFile(kept, []byte("apiVersion: helmsrc.dev/v1alpha1\nkind: Lock\nentries: []\n# end\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		dir:      dir + ": not a regular file",
		large:    large + ": larger than 64 MiB",
		conflict: conflict + ":3: the lock file has a conflict marker",
		kept:     kept + ": the file is read-only",
		filepath.Join(dir, "absent", lock.FileName): filepath.Join(dir, "absent", lock.FileName) + ": no such file or directory",
	} {
		_, err := Change(t.Context(), name, func(l *lock.Lock) { l.Put(entry("new")) })
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if content, _ := os.ReadFile(name); strings.Contains(string(content), "new") {
			t.Errorf("%s was written", name)
		}
		if checked := Check(name); name != conflict && name != large && checked == nil {
			t.Errorf("%s can be written, and could not", name)
		}
	}
	if _, err := Read(filepath.Join(dir, "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
