package store

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	godigest "github.com/opencontainers/go-digest"
)

// childVariable makes the test binary play a part in a test instead of running the tests.
const childVariable = "HELMSRC_STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if part := os.Getenv(childVariable); part != "" {
		os.Exit(runChild(part))
	}
	os.Exit(m.Run())
}

var (
	chartKey = Key{"HelmChart", "apps", "podinfo"}
	repoKey  = Key{"HelmRepository", "apps", "podinfo"}
	theTime  = time.Date(2026, 3, 4, 5, 6, 7, 890, time.UTC)
)

func testOptions() Options {
	return Options{
		RetentionTTL:     time.Minute,
		RetentionRecords: 2,
		Now:              func() time.Time { return theTime },
	}
}

func openStore(t *testing.T, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newStore(t *testing.T) *Store {
	t.Helper()
	return openStore(t, filepath.Join(t.TempDir(), "artifacts"), testOptions())
}

func lock(t *testing.T, s *Store, key Key) (unlock func()) {
	t.Helper()
	f, err := s.Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := f(); err != nil {
			t.Error(err)
		}
	}
}

// put stores an artifact of an object that is locked.
func put(t *testing.T, s *Store, key Key, file, link, content string) Artifact {
	t.Helper()
	p, err := s.Create(key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	a, err := p.Commit(file, link)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// lockAndPut stores an artifact of an object that is not locked.
func lockAndPut(t *testing.T, s *Store, key Key, file, link, content string) Artifact {
	t.Helper()
	defer lock(t, s, key)()
	return put(t, s, key, file, link, content)
}

func remember(t *testing.T, s *Store, key Key, r *Record) {
	t.Helper()
	if err := s.Remember(key, r, nil); err != nil {
		t.Fatal(err)
	}
}

// files lists everything below dir, directories with a slash behind, links with their targets. Lock files are left
// out.
func files(t *testing.T, dir string) []string {
	t.Helper()
	names := []string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		switch {
		case d.IsDir():
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			name += " -> " + target
		case path.Ext(name) == lockSuffix:
			return nil
		}
		names = append(names, name)
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return names
}

func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	if got := files(t, dir); !slices.Equal(got, want) {
		t.Errorf("in the artifacts directory:\n got %q\nwant %q", got, want)
	}
}

func TestOpenWritesNothing(t *testing.T) {
	s := newStore(t)
	if _, err := s.Recall(chartKey); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Recall: %v", err)
	}
	if err := s.Verify("helmchart/apps/podinfo/podinfo-1.0.0.tgz", "sha256:00"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Verify: %v", err)
	}
	if keys, err := s.Keys(); len(keys) != 0 || err != nil {
		t.Errorf("Keys: %v, %v", keys, err)
	}
	if keys, err := s.Prune(t.Context(), func(Key) bool { return false }); len(keys) != 0 || err != nil {
		t.Errorf("Prune: %v, %v", keys, err)
	}
	if _, err := os.Lstat(s.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the artifacts directory is there: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	if _, err := Open("", testOptions()); err == nil {
		t.Error("no directory is accepted")
	}
	if _, err := Open(t.TempDir(), Options{}); err == nil {
		t.Error("no clock is accepted")
	}
}

func TestLayout(t *testing.T) {
	s := newStore(t)
	unlock := lock(t, s, chartKey)
	a := put(t, s, chartKey, "podinfo-6.0.0+build.1.tgz", LinkLatest, "archive")
	remember(t, s, chartKey, &Record{Status: []byte(`{}`)})
	unlock()
	lockAndPut(t, s, repoKey, "index-abc.yaml", LinkIndex, "entries: {}\n")

	wantFiles(t, s.Dir(),
		".helmsrc/v1/helmchart/apps/podinfo.json",
		"helmchart/apps/podinfo/latest.tar.gz -> podinfo-6.0.0+build.1.tgz",
		"helmchart/apps/podinfo/podinfo-6.0.0+build.1.tgz",
		"helmrepository/apps/podinfo/index-abc.yaml",
		"helmrepository/apps/podinfo/index.yaml -> index-abc.yaml",
	)
	want := Artifact{
		Path:           "helmchart/apps/podinfo/podinfo-6.0.0+build.1.tgz",
		Digest:         godigest.FromString("archive").String(),
		Size:           7,
		LastUpdateTime: theTime.Truncate(time.Second),
	}
	if a != want {
		t.Errorf("got %+v, want %+v", a, want)
	}
	if err := s.Verify(a.Path, a.Digest); err != nil {
		t.Error(err)
	}
}

func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // has no such modes
	}
	s := newStore(t)
	unlock := lock(t, s, chartKey)
	put(t, s, chartKey, "podinfo-6.0.0.tgz", LinkLatest, "archive")
	remember(t, s, chartKey, &Record{})
	unlock()
	// The mode that the umask leaves is visible by default.
	like := t.TempDir()
	if err := errors.Join(os.Mkdir(like+"/dir", 0o777), os.WriteFile(like+"/file", nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	perm := func(name string) fs.FileMode {
		fi, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return fi.Mode().Perm()
	}
	dir, file := perm(like+"/dir"), perm(like+"/file")
	err := filepath.WalkDir(s.Dir(), func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		dir, file := dir, file
		if strings.Contains(p, ".helmsrc") {
			dir, file = 0o700, 0o600
		}
		switch {
		case p == s.Dir():
		case d.IsDir() && fi.Mode().Perm() != dir, d.Type().IsRegular() && fi.Mode().Perm() != file:
			t.Errorf("%s has mode %v", p, fi.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// §12 case 16: the URL is built outside the store from the artifact's path, so that another advertised address does
// not concern the store. The path must depend neither on the directory nor on the case of the kind.
func TestPath(t *testing.T) {
	t.Run("case 16: path part of the URL", func(t *testing.T) {
		var paths []string
		for _, kind := range []string{"HelmChart", "helmchart"} {
			s := newStore(t)
			a := lockAndPut(t, s, Key{kind, "apps", "podinfo"}, "podinfo-1.0.0.tgz", "", "x")
			if _, err := os.Stat(filepath.Join(s.Dir(), filepath.FromSlash(a.Path))); err != nil {
				t.Error(err)
			}
			p, err := Key{kind, "apps", "podinfo"}.Path("podinfo-1.0.0.tgz")
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, a.Path, p)
		}
		if len(slices.Compact(paths)) != 1 {
			t.Errorf("paths differ: %q", paths)
		}
	})
	if p, err := repoKey.Path(LinkIndex); err != nil || p != "helmrepository/apps/podinfo/index.yaml" {
		t.Errorf("got %q, %v", p, err)
	}
}

func TestAlgorithm(t *testing.T) {
	o := testOptions()
	o.Algorithm = godigest.SHA512
	s := openStore(t, t.TempDir(), o)
	a := lockAndPut(t, s, chartKey, "podinfo-1.0.0.tgz", "", "x")
	if a.Digest != godigest.SHA512.FromString("x").String() {
		t.Errorf("digest %s", a.Digest)
	}
	// Another flag in the next run does not invalidate stored artifacts.
	s = openStore(t, s.Dir(), testOptions())
	if err := s.Verify(a.Path, a.Digest); err != nil {
		t.Error(err)
	}
}

// TestRename checks that the files of an object are stored under another name, under which the store lists it.
func TestRename(t *testing.T) {
	s := newStore(t)
	name := NewKey(chartKey.Kind, chartKey.Namespace, "other")
	s.Rename(chartKey, name)
	a, err := storeAs(t, s, chartKey, "podinfo-1.0.0.tgz")
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := name.Path("podinfo-1.0.0.tgz"); a.Path != want {
		t.Errorf("stored as %s", a.Path)
	}
	keys, err := s.Keys()
	if err != nil || len(keys) != 1 || keys[0] != name || s.Stored(chartKey) != name || s.Stored(name) != name {
		t.Errorf("%v, %v", keys, err)
	}
}
