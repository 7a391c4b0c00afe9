package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func storeAll(t *testing.T, s *Store, keys ...Key) {
	t.Helper()
	for _, k := range keys {
		unlock := lock(t, s, k)
		put(t, s, k, "x-1.0.0.tgz", LinkLatest, "x")
		remember(t, s, k, &Record{Fingerprint: k.String()})
		unlock()
	}
}

func TestPrune(t *testing.T) {
	s := newStore(t)
	a, b, c, d := NewKey("HelmChart", "n1", "a"), NewKey("HelmChart", "n1", "b"), NewKey("HelmRepository", "n1", "a"),
		NewKey("HelmRepository", "n2", "d")
	storeAll(t, s, d, b, a)
	unlock := lock(t, s, c)
	remember(t, s, c, &Record{}) // failed: remembered, but without an artifact
	unlock()
	lock(t, s, NewKey("HelmChart", "n1", "killed"))() // nothing but a lock
	lockAndPut(t, s, a, "x-1.0.0.tgz", LinkLatest, "killed before it was remembered")

	if keys, err := s.Keys(); err != nil || !slices.Equal(keys, []Key{a, b, c, d}) {
		t.Errorf("Keys: %v, %v", keys, err)
	}
	for _, name := range []string{"README.md", "helmchart/mine.tgz", "helmchart/n1/mine.tgz", "helmchart/n1/a/notes.txt"} {
		alter(t, s, name, "foreign")
	}
	pruned, err := s.Prune(t.Context(), func(k Key) bool { return k == b })
	if err != nil || !slices.Equal(pruned, []Key{a, c, d}) {
		t.Errorf("Prune: %v, %v", pruned, err)
	}
	wantFiles(t, s.Dir(),
		".helmsrc/v1/helmchart/n1/b.json",
		"README.md",
		"helmchart/mine.tgz",
		"helmchart/n1/a/notes.txt",
		"helmchart/n1/b/latest.tar.gz -> x-1.0.0.tgz",
		"helmchart/n1/b/x-1.0.0.tgz",
		"helmchart/n1/mine.tgz",
	)
	for _, gone := range []string{
		"helmrepository", ".helmsrc/v1/helmrepository", ".helmsrc/v1/helmchart/n1/a.lock",
		".helmsrc/v1/helmchart/n1/killed.lock",
	} {
		if _, err := os.Lstat(filepath.Join(s.Dir(), gone)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", gone, err)
		}
	}
	if keys, err := s.Keys(); err != nil || !slices.Equal(keys, []Key{b}) {
		t.Errorf("Keys: %v, %v", keys, err)
	}
	storeAll(t, s, a) // again, where the lock file was removed
}

// Without the hidden directory, as after a download of CI artifacts, only directories of known kinds are recognised.
func TestPruneWithoutMemory(t *testing.T) {
	o := testOptions()
	o.Kinds = []string{"HelmChart", "Bucket"}
	s := openStore(t, t.TempDir(), o)
	a, b := NewKey("HelmChart", "n1", "a"), NewKey("HelmRepository", "n1", "b")
	storeAll(t, s, a, b)
	if err := os.RemoveAll(filepath.Join(s.Dir(), ".helmsrc")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(s.Dir(), "helmchart", "n1", "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if keys, err := s.Keys(); err != nil || !slices.Equal(keys, []Key{a}) {
		t.Errorf("Keys: %v, %v", keys, err)
	}
	if keys, err := s.Prune(t.Context(), func(Key) bool { return false }); err != nil || !slices.Equal(keys, []Key{a}) {
		t.Errorf("Prune: %v, %v", keys, err)
	}
	wantFiles(t, s.Dir(), "helmrepository/n1/b/latest.tar.gz -> x-1.0.0.tgz", "helmrepository/n1/b/x-1.0.0.tgz")
}

func TestPruneOfBusyObject(t *testing.T) {
	s := newStore(t)
	a, b := NewKey("HelmChart", "n1", "a"), NewKey("HelmChart", "n1", "b")
	storeAll(t, s, a, b)
	defer lock(t, openStore(t, s.Dir(), testOptions()), b)()
	ctx, cancel := context.WithCancel(t.Context())
	pruned, err := s.Prune(ctx, func(k Key) bool {
		if k == b { // the wait for its lock has an end
			cancel()
		}
		return false
	})
	if !errors.Is(err, context.Canceled) || !slices.Equal(pruned, []Key{a}) {
		t.Errorf("Prune: %v, %v", pruned, err)
	}
	if _, err := s.Recall(b); err != nil {
		t.Error(err)
	}
	// A prune that does not even begin returns an error.
	if pruned, err := s.Prune(ctx, func(Key) bool { return false }); !errors.Is(err, context.Canceled) || len(pruned) > 0 {
		t.Errorf("Prune after the end: %v, %v", pruned, err)
	}
}

// TestPruneFails checks that each object that cannot be removed is an error that names it, and the rest is removed.
func TestPruneFails(t *testing.T) {
	s := newStore(t)
	a, b, c := NewKey("HelmChart", "n1", "a"), NewKey("HelmChart", "n1", "b"), NewKey("HelmChart", "n1", "c")
	storeAll(t, s, a, b, c)
	for _, k := range []Key{a, c} { // a directory in the place of the record
		if err := os.Remove(filepath.Join(s.Dir(), k.record())); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(s.Dir(), k.record(), "x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	pruned, err := s.Prune(t.Context(), func(Key) bool { return false })
	if !slices.Equal(pruned, []Key{b}) {
		t.Errorf("pruned %v", pruned)
	}
	for _, k := range []Key{a, c} {
		if err == nil || !strings.Contains(err.Error(), k.record()) {
			t.Errorf("error %v, which does not name %s", err, k.record())
		}
	}
}

// TestPruneStopped checks that Prune ends with its context, and returns an error.
func TestPruneStopped(t *testing.T) {
	s := newStore(t)
	storeAll(t, s, NewKey("HelmChart", "n1", "a"))
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	pruned, err := s.Prune(ctx, func(Key) bool { return false })
	if len(pruned) > 0 || !errors.Is(err, cause) {
		t.Errorf("pruned %v, error %v", pruned, err)
	}
}
