package store_test

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/helmsrc/helmsrc/internal/store"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func scratchDir(t *testing.T, s *store.Scratch) string {
	t.Helper()
	dir, err := s.Dir()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestScratch(t *testing.T) {
	parent := t.TempDir()
	s := &store.Scratch{Parent: parent}
	if err := s.Close(); err != nil || len(names(t, parent)) > 0 {
		t.Errorf("what was not needed: %v, %q", err, names(t, parent))
	}
	var all sync.WaitGroup
	dirs := make([]string, 10)
	for i := range dirs {
		all.Go(func() { dirs[i], _ = s.Dir() })
	}
	all.Wait()
	if one := slices.Compact(slices.Clone(dirs)); one[0] == "" || len(one) != 1 {
		t.Errorf("%q", dirs)
	}
	if err := os.WriteFile(filepath.Join(dirs[0], "x"), nil, 0o600); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil || len(names(t, parent)) > 0 {
		t.Errorf("left: %v, %q", err, names(t, parent))
	}
}

// One that is in use is left alone; one whose lock is free goes, and nothing else does.
func TestScratchAbandoned(t *testing.T) {
	parent := t.TempDir()
	living := &store.Scratch{Parent: parent}
	dir := scratchDir(t, living)
	for _, name := range []string{"helmsrc-dead.lock", "other.lock"} {
		if err := os.WriteFile(filepath.Join(parent, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"helmsrc-dead/tree", "helmsrc-unlocked", "helmsrc-dir.lock", "other", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(parent, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// A link in the place of the directory is not followed.
	if err := os.WriteFile(filepath.Join(parent, "helmsrc-link.lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(parent, "elsewhere", "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere", filepath.Join(parent, "helmsrc-link")); err != nil {
		t.Fatal(err)
	}
	next := &store.Scratch{Parent: parent}
	other := scratchDir(t, next)
	for name, want := range map[string]bool{
		filepath.Base(dir): true, filepath.Base(dir) + ".lock": true, filepath.Base(other): true,
		"helmsrc-dead": false, "helmsrc-dead.lock": false, "helmsrc-link": false,
		"helmsrc-unlocked": true, "helmsrc-dir.lock": true, "other": true, "elsewhere/precious": true,
	} {
		if _, err := os.Stat(filepath.Join(parent, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, s := range []*store.Scratch{living, next} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Many at once do not take each other's for abandoned ones.
func TestScratchRace(t *testing.T) {
	parent := t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				s := &store.Scratch{Parent: parent}
				dir, err := s.Dir()
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, "x"), nil, 0o600)
				}
				if err == nil {
					err = s.Close()
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if left := names(t, parent); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
