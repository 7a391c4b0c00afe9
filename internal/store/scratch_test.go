package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// A directory in use is left alone; a directory with a free lock is removed if the lock has the mark, and no other
// file is removed.
func TestScratchAbandoned(t *testing.T) {
	parent := t.TempDir()
	living := &store.Scratch{Parent: parent}
	dir := scratchDir(t, living)
	random := func(c string) string { return "helmsrc-" + strings.Repeat(c, 26) }
	mark := func(name string) string { return "temporary directory of helmsrc: " + name + "\n" }
	for name, text := range map[string]string{
		random("D") + ".lock":      mark(random("D")), // dead
		random("E") + ".lock":      "",                // of another process that locks as we do
		random("F") + ".lock":      mark(random("D")), // a copy
		random("G") + ".lock":      mark(random("G")) + "x",
		random("L") + ".lock":      mark(random("L")), // its directory is a link
		random("R") + ".lock":      mark(random("R")), // and here a file
		random("R"):                "precious",
		"helmsrc-dev.lock":         mark("helmsrc-dev"),
		"other.lock":               "",
		"elsewhere/precious":       "",
		random("D") + "/tree/file": "",
		random("E") + "/precious":  "",
		random("F") + "/precious":  "",
		random("G") + "/precious":  "",
		"helmsrc-dev/precious":     "",
		"helmsrc-unlocked/x":       "",
		random("M") + ".lock/x":    "",
		"other/x":                  "",
	} {
		path := filepath.Join(parent, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("elsewhere", filepath.Join(parent, random("L"))); err != nil {
		t.Fatal(err)
	}
	next := &store.Scratch{Parent: parent}
	other := scratchDir(t, next)
	for name, want := range map[string]bool{
		filepath.Base(dir): true, filepath.Base(dir) + ".lock": true, filepath.Base(other): true,
		random("D"): false, random("D") + ".lock": false,
		random("E") + "/precious": true, random("F") + "/precious": true, random("G") + "/precious": true, random("R"): true,
		"helmsrc-dev/precious": true, "elsewhere/precious": true, random("L"): true,
		"helmsrc-unlocked": true, random("M") + ".lock": true, "other": true,
	} {
		if _, err := os.Lstat(filepath.Join(parent, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, s := range []*store.Scratch{living, next} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Concurrent processes do not mistake each other's directories for abandoned ones.
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

// A directory that cannot be created is an error each time, and leaves no file to remove at the end.
func TestScratchNowhere(t *testing.T) {
	s := &store.Scratch{Parent: filepath.Join(t.TempDir(), "missing")}
	for range 2 {
		if dir, err := s.Dir(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %q, %v", dir, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
