package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	releaseKey = Key{"HelmRelease", "apps", "podinfo"}
	otherKey   = Key{"HelmRelease", "apps", "other"}
)

func sharing() Options {
	o := testOptions()
	o.Shared = []string{"HelmRelease"}
	return o
}

func newSharedStore(t *testing.T) *Store {
	t.Helper()
	return openStore(t, filepath.Join(t.TempDir(), "artifacts"), sharing())
}

// again returns the store as another process sees it.
func again(t *testing.T, s *Store) *Store {
	t.Helper()
	return openStore(t, s.Dir(), sharing())
}

func save(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func wantFingerprint(t *testing.T, s *Store, key Key, want string) {
	t.Helper()
	r, err := s.Recall(key)
	switch {
	case want == "" && !errors.Is(err, fs.ErrNotExist):
		t.Errorf("%s: recalled %v, %v", key, r, err)
	case want != "" && (err != nil || r.Fingerprint != want):
		t.Errorf("%s: recalled %v, %v, want %s", key, r, err, want)
	}
}

func TestSharedRecords(t *testing.T) {
	s := newSharedStore(t)
	wantFingerprint(t, s, releaseKey, "")
	remember(t, s, releaseKey, &Record{Fingerprint: "f1", Object: []byte("{\"a\":\"<&>\u2028\"}"), Failure: "HS001"})
	remember(t, s, otherKey, &Record{Fingerprint: "o"})
	wantFingerprint(t, s, releaseKey, "f1")
	wantFingerprint(t, again(t, s), releaseKey, "")
	wantFiles(t, s.Dir())

	save(t, s)
	wantFiles(t, s.Dir(), sharedRecordsFile)
	r, err := again(t, s).Recall(Key{"helmrelease", "apps", "podinfo"})
	if err != nil || r.FormatVersion != 1 || string(r.Object) != "{\"a\":\"<&>\u2028\"}" || r.Failure != "HS001" {
		t.Errorf("recalled %+v, %v", r, err)
	}
	if keys, err := again(t, s).Keys(); err != nil || !slices.Equal(keys, []Key{NewKey("HelmRelease", "apps", "other"), NewKey("HelmRelease", "apps", "podinfo")}) {
		t.Errorf("Keys: %v, %v", keys, err)
	}
	if err := s.Remember(releaseKey, &Record{Status: []byte("{")}, nil); err == nil {
		t.Error("what is no JSON is remembered")
	}
	if err := s.Remember(Key{"HelmRelease", "..", "x\ny"}, &Record{}, nil); err == nil {
		t.Error("a name with a line break is remembered")
	}
}

// The file is written only if a record has changed.
func TestSharedRecordsUnchanged(t *testing.T) {
	s := newSharedStore(t)
	stat := func() os.FileInfo {
		fi, err := os.Stat(filepath.Join(s.Dir(), sharedRecordsFile))
		if err != nil {
			t.Fatal(err)
		}
		return fi
	}
	remember(t, s, releaseKey, &Record{Fingerprint: "f"})
	save(t, s)
	before := stat()
	for _, s := range []*Store{s, again(t, s)} {
		wantFingerprint(t, s, releaseKey, "f")
		remember(t, s, releaseKey, &Record{Fingerprint: "g"})
		remember(t, s, releaseKey, &Record{Fingerprint: "f"})
		save(t, s)
		if !os.SameFile(before, stat()) {
			t.Error("an equal record was written again")
		}
	}
	remember(t, s, releaseKey, &Record{Fingerprint: "g"})
	save(t, s)
	if os.SameFile(before, stat()) {
		t.Error("the file was changed in place")
	}
}

// TestSharedRecordsWritten checks that the file is not built in memory beside the records.
func TestSharedRecordsWritten(t *testing.T) {
	records := recordTexts{}
	for i := range 4000 {
		records[NewKey("HelmRelease", "apps", fmt.Sprintf("app-%d", i))] = bytes.Repeat([]byte("x"), 4<<10)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n, err := records.WriteTo(io.Discard)
	if err = errors.Join(err, records.check()); err != nil || n != int64(records.size()) {
		t.Fatalf("%d bytes: %v", n, err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(n)/4 {
		t.Errorf("%d bytes of memory for a file of %d", took, n)
	}
}

// Records that other processes wrote since the file was read stay.
func TestSharedRecordsOfTwo(t *testing.T) {
	s := newSharedStore(t)
	other := again(t, s)
	wantFingerprint(t, s, otherKey, "")
	wantFingerprint(t, other, releaseKey, "")
	remember(t, s, releaseKey, &Record{Fingerprint: "mine"})
	remember(t, other, otherKey, &Record{Fingerprint: "other's"})
	save(t, other)
	save(t, s)
	wantFingerprint(t, s, otherKey, "other's")
	wantFingerprint(t, again(t, s), otherKey, "other's")
	wantFingerprint(t, again(t, s), releaseKey, "mine")
}

// An object for which an earlier version of the program kept a file is one object.
func TestSharedRecordsAndFile(t *testing.T) {
	s := newSharedStore(t)
	old := openStore(t, s.Dir(), testOptions())
	unlock := lock(t, old, releaseKey)
	remember(t, old, releaseKey, &Record{Fingerprint: "old"})
	unlock()
	remember(t, s, releaseKey, &Record{Fingerprint: "new"})
	save(t, s)
	if keys, err := s.Keys(); err != nil || len(keys) != 1 {
		t.Errorf("Keys: %v, %v", keys, err)
	}
	wantFingerprint(t, s, releaseKey, "new")
	pruned, err := s.Prune(t.Context(), func(Key) bool { return false })
	if err != nil || len(pruned) != 1 {
		t.Errorf("Prune: %v, %v", pruned, err)
	}
	wantFiles(t, s.Dir(), sharedRecordsFile)
}

func TestPruneSharedRecords(t *testing.T) {
	s := newSharedStore(t)
	storeAll(t, s, chartKey)
	remember(t, s, releaseKey, &Record{Fingerprint: "f"})
	remember(t, s, otherKey, &Record{Fingerprint: "o"})
	save(t, s)
	chart, release, other := NewKey("HelmChart", "apps", "podinfo"), NewKey("HelmRelease", "apps", "podinfo"), NewKey("HelmRelease", "apps", "other")

	pruned, err := again(t, s).Prune(t.Context(), func(k Key) bool { return k != chart && k != release })
	if err != nil || !slices.Equal(pruned, []Key{chart, release}) {
		t.Errorf("Prune: %v, %v", pruned, err)
	}
	wantFiles(t, s.Dir(), sharedRecordsFile)
	if keys, err := again(t, s).Keys(); err != nil || !slices.Equal(keys, []Key{other}) {
		t.Errorf("Keys: %v, %v", keys, err)
	}
	if pruned, err := again(t, s).Prune(t.Context(), func(Key) bool { return true }); err != nil || len(pruned) > 0 {
		t.Errorf("Prune: %v, %v", pruned, err)
	}
}

func TestSharedRecordsRefuses(t *testing.T) {
	good := "helmrelease/apps/other\t{\"formatVersion\":1,\"fingerprint\":\"o\"}\n"
	for name, tt := range map[string]struct {
		content string
		other   string // the fingerprint of the other object, which may be readable
	}{
		"no record":      {good + "helmrelease/apps/podinfo\n", "o"},
		"cut off":        {good + "helmrelease/apps/podinfo\t{\"formatVersion\":1,", "o"},
		"later version":  {good + "helmrelease/apps/podinfo\t{\"formatVersion\":2}\n", "o"},
		"no object":      {good + "\n", ""},
		"no records":     {"{}", ""},
		"strange object": {good + "helmrelease/../podinfo\t{}\n", ""},
		"too large":      {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSharedStore(t)
			remember(t, s, releaseKey, &Record{Fingerprint: "before"})
			save(t, s)
			alter(t, s, sharedRecordsFile, tt.content)
			s = again(t, s)
			if name == "too large" {
				if err := os.Truncate(filepath.Join(s.Dir(), sharedRecordsFile), MaxSharedRecords+1); err != nil {
					t.Fatal(err)
				}
			}
			_, err := s.Recall(releaseKey)
			var unusable *RecordError
			if !errors.As(err, &unusable) || !strings.Contains(err.Error(), sharedRecordsFile) {
				t.Fatalf("got %v", err)
			}
			wantFingerprint(t, s, otherKey, tt.other) // and no second word about the file
			remember(t, s, releaseKey, &Record{Fingerprint: "f"})
			save(t, s)
			wantFingerprint(t, again(t, s), releaseKey, "f")
			wantFingerprint(t, again(t, s), otherKey, tt.other)
		})
	}
}

// A planted link or directory at the path of the shared file is neither followed nor changed.
func TestSharedRecordsPlanted(t *testing.T) {
	target := filepath.Join(t.TempDir(), "target")
	if err := os.WriteFile(target, []byte("do not touch"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSharedStore(t)
	path := filepath.Join(s.Dir(), filepath.FromSlash(sharedRecordsFile))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	plant(t, target, path)
	plant(t, target, path+tempSuffix)
	var unusable *RecordError
	if _, err := s.Recall(releaseKey); !errors.As(err, &unusable) {
		t.Errorf("Recall: %v", err)
	}
	remember(t, s, releaseKey, &Record{Fingerprint: "f"})
	save(t, s)
	wantFiles(t, s.Dir(), sharedRecordsFile)
	if data, err := os.ReadFile(target); string(data) != "do not touch" {
		t.Errorf("the target is now %q, %v", data, err)
	}

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	s = again(t, s)
	remember(t, s, releaseKey, &Record{Fingerprint: "f"})
	if err := s.Save(t.Context()); err == nil || !strings.Contains(err.Error(), sharedRecordsFile) {
		t.Errorf("Save: %v", err)
	}
}

// writeShared remembers objects of its own in turn with other processes.
func writeShared(s *Store) error {
	seed := os.Getenv(childSeed)
	for i := range counts {
		if err := s.Remember(Key{"HelmRelease", "apps", fmt.Sprintf("%s-%d", seed, i)}, &Record{Fingerprint: seed}, nil); err != nil {
			return err
		}
		if err := s.Save(context.Background()); err != nil {
			return err
		}
	}
	return nil
}

func TestSharedRecordsBetweenProcesses(t *testing.T) {
	const processes = 3
	dir := t.TempDir()
	var running []*exec.Cmd
	for i := range processes {
		cmd := child(t, "book", dir, i)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	s := openStore(t, dir, sharing())
	for i := range processes {
		for n := range counts {
			wantFingerprint(t, s, Key{"HelmRelease", "apps", fmt.Sprintf("%d-%d", i, n)}, strconv.Itoa(i))
		}
	}
}
