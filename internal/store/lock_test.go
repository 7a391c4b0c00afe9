package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestNeedsLock(t *testing.T) {
	s := newStore(t)
	a := lockAndPut(t, s, chartKey, "podinfo-1.0.0.tgz", "", "x")
	defer lock(t, s, repoKey)()
	if _, err := s.Create(chartKey); !errors.Is(err, errNotLocked) {
		t.Errorf("Create: %v", err)
	}
	if err := s.Remember(chartKey, &Record{}, nil); !errors.Is(err, errNotLocked) {
		t.Errorf("Remember: %v", err)
	}
	if _, err := s.Collect(chartKey, ""); !errors.Is(err, errNotLocked) {
		t.Errorf("Collect: %v", err)
	}
	if err := s.Remove(a.Path); !errors.Is(err, errNotLocked) {
		t.Errorf("Remove: %v", err)
	}
	wantFiles(t, s.Dir(), a.Path)
}

// A killed process leaves temporary files behind. The next process that locks the object removes them, and no other files.
func TestSweep(t *testing.T) {
	s := newStore(t)
	lockAndPut(t, s, chartKey, "podinfo-1.0.0.tgz", LinkLatest, "x")
	for _, name := range []string{
		"helmchart/apps/podinfo/.tmp-OLD",
		"helmchart/apps/podinfo/.hidden",
		"helmchart/apps/podinfo/notes.txt",
		"helmchart/apps/other/.tmp-OF-OTHER",
		".helmsrc/v1/helmchart/apps/podinfo.json.tmp",
		".helmsrc/v1/helmchart/apps/podinfo.next.tmp",
		".helmsrc/v1/helmchart/apps/other.json.tmp",
	} {
		name = filepath.Join(s.Dir(), filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("nowhere", filepath.Join(s.Dir(), "helmchart/apps/podinfo/.tmp-LINK")); err != nil {
		t.Fatal(err)
	}
	lock(t, s, chartKey)()
	wantFiles(t, s.Dir(),
		".helmsrc/v1/helmchart/apps/other.json.tmp",
		"helmchart/apps/other/.tmp-OF-OTHER",
		"helmchart/apps/podinfo/.hidden",
		"helmchart/apps/podinfo/latest.tar.gz -> podinfo-1.0.0.tgz",
		"helmchart/apps/podinfo/notes.txt",
		"helmchart/apps/podinfo/podinfo-1.0.0.tgz",
	)
}

func TestLockBlocks(t *testing.T) {
	s := newStore(t)
	unlock := lock(t, s, chartKey)
	for _, other := range []*Store{s, openStore(t, s.Dir(), testOptions())} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := other.Lock(ctx, chartKey); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Lock: %v", err)
		}
		lock(t, other, repoKey)() // another object is free
	}
	got := make(chan error)
	go func() {
		f, err := openStore(t, s.Dir(), testOptions()).Lock(t.Context(), chartKey)
		if err == nil {
			err = f()
		}
		got <- err
	}()
	unlock()
	unlock() // does nothing
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// A process that waited for a lock file that a prune has removed does not get the lock, even if it locks the opened file.
func TestLockFileRemoved(t *testing.T) {
	s := newStore(t)
	unlock := lock(t, s, chartKey)
	v, err := s.existing()
	if err != nil {
		t.Fatal(err)
	}
	key, err := chartKey.checked()
	if err != nil {
		t.Fatal(err)
	}
	waiting, err := openLock(v, key.lock())
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	current := func() bool {
		ok, err := isCurrent(v.root, key.lock(), waiting)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if !current() {
		t.Error("the lock file is not current while it is there")
	}
	if err := v.root.Remove(key.lock()); err != nil {
		t.Fatal(err)
	}
	unlock()
	if current() {
		t.Error("a removed lock file is current")
	}
	defer lock(t, s, chartKey)() // makes a new one
	if current() {
		t.Error("a replaced lock file is current")
	}
}

// A file that is not regular is never opened as a lock: a pipe would block for ever, a link may lead anywhere.
func TestLockIrregular(t *testing.T) {
	s := newStore(t)
	lock(t, s, chartKey)()
	key, err := chartKey.checked()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(s.Dir(), filepath.FromSlash(key.lock()))
	outside := filepath.Join(t.TempDir(), "outside")
	for what, put := range map[string]func() error{
		"a directory": func() error { return os.Mkdir(name, 0o700) },
		"a link":      func() error { return os.Symlink(outside, name) },
	} {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
		if err := put(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Lock(t.Context(), chartKey); !errors.Is(err, errIrregular) {
			t.Errorf("%s: got %v, want %v", what, err, errIrregular)
		}
	}
	if _, err := os.Lstat(outside); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the link was followed: %v", err)
	}
}
