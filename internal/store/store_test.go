package store

import (
	"bytes"
	"context"
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
	if err := s.Remember(key, r); err != nil {
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
	err := filepath.WalkDir(s.Dir(), func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && fi.Mode().Perm() != 0o700, d.Type().IsRegular() && fi.Mode().Perm() != 0o600:
			t.Errorf("%s has mode %v", p, fi.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// §12 case 16: the URL is made elsewhere, of the artifact's path, so that another advertised address needs nothing of
// the store. The path must neither depend on the directory nor on how the kind is written.
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
	// Another flag in the next run does not spoil what is stored.
	s = openStore(t, s.Dir(), testOptions())
	if err := s.Verify(a.Path, a.Digest); err != nil {
		t.Error(err)
	}
}

// §12 case 18: the link beside the artifact.
func TestLink(t *testing.T) {
	s := newStore(t)
	for _, file := range []string{"index-1.yaml", "index-2.yaml", "index-2.yaml", "index-1.yaml"} {
		t.Run("case 18: index.yaml points to "+file, func(t *testing.T) {
			a := lockAndPut(t, s, repoKey, file, LinkIndex, "content of "+file)
			link := filepath.Join(s.Dir(), "helmrepository", "apps", "podinfo", LinkIndex)
			target, err := os.Readlink(link)
			if err != nil {
				t.Fatal(err)
			}
			if got := path.Join(path.Dir(a.Path), target); got != a.Path {
				t.Errorf("points to %s, not to %s", got, a.Path)
			}
			if data, err := os.ReadFile(link); string(data) != "content of "+file || err != nil {
				t.Errorf("reads %q, %v", data, err)
			}
		})
	}
	t.Run("the directory can be moved", func(t *testing.T) {
		moved := filepath.Join(t.TempDir(), "moved")
		if err := os.Rename(s.Dir(), moved); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(moved, "helmrepository", "apps", "podinfo", LinkIndex))
		if string(data) != "content of index-1.yaml" || err != nil {
			t.Errorf("reads %q, %v", data, err)
		}
	})
}

func TestLinkError(t *testing.T) {
	s := newStore(t)
	defer lock(t, s, chartKey)()
	// A directory in the link's place cannot be replaced by a rename.
	if err := os.MkdirAll(filepath.Join(s.Dir(), "helmchart", "apps", "podinfo", LinkLatest, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := s.Create(chartKey)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	a, err := p.Commit("podinfo-1.0.0.tgz", LinkLatest)
	var linkError *LinkError
	if !errors.As(err, &linkError) {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(err.Error(), tempPrefix) {
		t.Errorf("%q names a temporary file", err)
	}
	if err := s.Verify(a.Path, a.Digest); err != nil {
		t.Error(err)
	}
	wantFiles(t, s.Dir(), "helmchart/apps/podinfo/podinfo-1.0.0.tgz")
}

func TestPending(t *testing.T) {
	s := newStore(t)
	defer lock(t, s, chartKey)()
	p, err := s.Create(chartKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"the first attempt is longer", "the second"} {
		if err := p.Reset(); err != nil {
			t.Fatal(err)
		}
		for _, c := range []byte(content) {
			if _, err := p.Write([]byte{c}); err != nil {
				t.Fatal(err)
			}
		}
		b := make([]byte, 100)
		if n, _ := p.ReadAt(b, 4); string(b[:n]) != content[4:] {
			t.Errorf("reads %q", b[:n])
		}
		if p.Digest() != godigest.FromString(content) || p.Size() != int64(len(content)) {
			t.Errorf("digest %s, size %d", p.Digest(), p.Size())
		}
	}
	a, err := p.Commit("podinfo-1.0.0.tgz", "")
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(s.Dir(), a.Path)); string(data) != "the second" || err != nil {
		t.Errorf("stored %q, %v", data, err)
	}

	t.Run("after Commit", func(t *testing.T) {
		if err := p.Discard(); err != nil {
			t.Errorf("Discard: %v", err)
		}
		if _, err := p.Commit("podinfo-1.0.0.tgz", ""); err == nil {
			t.Error("Commit succeeds twice")
		}
		if _, err := p.Write(nil); err == nil {
			t.Error("Write succeeds")
		}
		if _, err := p.ReadAt(nil, 0); err == nil {
			t.Error("ReadAt succeeds")
		}
		if err := p.Reset(); err == nil {
			t.Error("Reset succeeds")
		}
		wantFiles(t, s.Dir(), "helmchart/apps/podinfo/podinfo-1.0.0.tgz")
	})
}

func TestDiscard(t *testing.T) {
	s := newStore(t)
	defer lock(t, s, chartKey)()
	p, err := s.Create(chartKey)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := p.Discard(); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, s.Dir())
}

func TestCommitRefuses(t *testing.T) {
	s := newStore(t)
	defer lock(t, s, chartKey)()
	for _, tt := range []struct{ file, link string }{
		{"", ""},
		{"..", ""},
		{"../x-1.0.0.tgz", ""},
		{"sub/x-1.0.0.tgz", ""},
		{`sub\x-1.0.0.tgz`, ""},
		{"/x-1.0.0.tgz", ""},
		{"x-1.0.0\n.tgz", ""},
		{"x-1.0.0\x1b[2J.tgz", ""},
		{"x-\u202e1.0.0.tgz", ""},
		{"x-\xff.tgz", ""},
		{".x-1.0.0.tgz", ""},
		{"x-1.0.0.zip", ""},
		{LinkLatest, ""},
		{LinkIndex, ""},
		{"x-1.0.0.tgz", "x-2.0.0.tgz"},
		{"x-1.0.0.tgz", "../latest.tar.gz"},
	} {
		p, err := s.Create(chartKey)
		if err != nil {
			t.Fatal(err)
		}
		if a, err := p.Commit(tt.file, tt.link); err == nil {
			t.Errorf("Commit(%q, %q) stores %s", tt.file, tt.link, a.Path)
		} else if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' }) {
			t.Errorf("the error %q has control characters", err)
		}
	}
	wantFiles(t, s.Dir())
}

func TestSameAgain(t *testing.T) {
	s := newStore(t)
	first := lockAndPut(t, s, chartKey, "podinfo-1.0.0.tgz", LinkLatest, "same")
	second := lockAndPut(t, s, chartKey, "podinfo-1.0.0.tgz", LinkLatest, "same")
	if first != second {
		t.Errorf("%+v differs from %+v", first, second)
	}
	if err := s.Verify(second.Path, second.Digest); err != nil {
		t.Error(err)
	}
}

// A version that is published twice replaces an artifact. Between that and Remember, the remembered digest is the old
// one; a run that is killed there must not look like tampering.
func TestReplaced(t *testing.T) {
	s := newStore(t)
	unlock := lock(t, s, chartKey)
	old := put(t, s, chartKey, "podinfo-1.0.0.tgz", LinkLatest, "old")
	remember(t, s, chartKey, &Record{Status: []byte(`{"n":1}`)})
	renewed := put(t, s, chartKey, "podinfo-1.0.0.tgz", LinkLatest, "new")
	unlock() // and nothing is remembered

	var altered *AlteredError
	if err := s.Verify(old.Path, old.Digest); !errors.Is(err, fs.ErrNotExist) || errors.As(err, &altered) {
		t.Errorf("an unfinished run: %v", err)
	}
	if err := s.Verify(renewed.Path, renewed.Digest); err != nil {
		t.Error(err)
	}
	alter(t, s, old.Path, "neither")
	if err := s.Verify(old.Path, old.Digest); !errors.As(err, &altered) {
		t.Errorf("a third content: %v", err)
	}
	alter(t, s, old.Path, "new")
	defer lock(t, s, chartKey)()
	remember(t, s, chartKey, &Record{Status: []byte(`{"n":1}`)}) // the same as before, yet it must settle the matter
	if err := s.Verify(old.Path, old.Digest); !errors.As(err, &altered) {
		t.Errorf("after Remember: %v", err)
	}
	wantFiles(t, s.Dir(),
		".helmsrc/v1/helmchart/apps/podinfo.json",
		"helmchart/apps/podinfo/latest.tar.gz -> podinfo-1.0.0.tgz",
		"helmchart/apps/podinfo/podinfo-1.0.0.tgz")
}

func alter(t *testing.T, s *Store, artifact, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.Dir(), filepath.FromSlash(artifact)), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestNeedsLock(t *testing.T) {
	s := newStore(t)
	a := lockAndPut(t, s, chartKey, "podinfo-1.0.0.tgz", "", "x")
	defer lock(t, s, repoKey)()
	if _, err := s.Create(chartKey); !errors.Is(err, ErrNotLocked) {
		t.Errorf("Create: %v", err)
	}
	if err := s.Remember(chartKey, &Record{}); !errors.Is(err, ErrNotLocked) {
		t.Errorf("Remember: %v", err)
	}
	if _, err := s.Collect(chartKey, ""); !errors.Is(err, ErrNotLocked) {
		t.Errorf("Collect: %v", err)
	}
	if err := s.Remove(a.Path); !errors.Is(err, ErrNotLocked) {
		t.Errorf("Remove: %v", err)
	}
	wantFiles(t, s.Dir(), a.Path)
}

// A killed process leaves temporary files behind. The next one that locks the object removes them, and no others.
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

func TestLockWaits(t *testing.T) {
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

// Who waited for a lock file that a prune has removed has nothing, even if he gets the lock of what he opened.
func TestLockFileRemoved(t *testing.T) {
	s := newStore(t)
	unlock := lock(t, s, chartKey)
	root, err := s.existing()
	if err != nil {
		t.Fatal(err)
	}
	key, err := chartKey.checked()
	if err != nil {
		t.Fatal(err)
	}
	waiting, err := openLock(root, key.lock())
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	current := func() bool {
		ok, err := isCurrent(root, key.lock(), waiting)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if !current() {
		t.Error("the lock file is not current while it is there")
	}
	if err := root.Remove(key.lock()); err != nil {
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

func TestCopyRoundTrip(t *testing.T) {
	s := newStore(t)
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	a := lockAndPut(t, s, chartKey, "podinfo-1.0.0.tgz", "", string(content))
	f, err := s.OpenArtifact(a.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(f); err != nil || !bytes.Equal(b.Bytes(), content) {
		t.Errorf("read %d bytes, %v", b.Len(), err)
	}
}
