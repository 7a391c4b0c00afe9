package cache_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/cache"
)

// world is a cache directory with a clock and the warnings.
type world struct {
	t        *testing.T
	dir      string
	now      time.Time
	max      int64
	mu       sync.Mutex
	warnings []string
}

func newWorld(t *testing.T) *world {
	return &world{t: t, dir: t.TempDir(), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func (w *world) options() cache.Options {
	return cache.Options{MaxSize: w.max, Now: func() time.Time { return w.now }, Warn: func(err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.warnings = append(w.warnings, err.Error())
	}}
}

// open opens the cache for one run.
func (w *world) open() *cache.Cache {
	w.t.Helper()
	c, err := cache.Open(w.dir, w.options())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (w *world) warned(want ...string) {
	w.t.Helper()
	if len(w.warnings) != len(want) {
		w.t.Fatalf("warnings %q, want %d", w.warnings, len(want))
	}
	for i := range want {
		if !strings.Contains(w.warnings[i], want[i]) {
			w.t.Errorf("warning %q, want %q", w.warnings[i], want[i])
		}
	}
	w.warnings = nil
}

// files returns the files below a part of the cache.
func (w *world) files(part string) []string {
	w.t.Helper()
	var files []string
	err := filepath.WalkDir(filepath.Join(cache.Path(w.dir), part), func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, name)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return files
}

var alice = cache.Scope{Source: "https://charts.test", Identity: "alice", Shown: "https://charts.test", Named: true}

const plenty = 1 << 20

func keep(c *cache.Cache, s cache.Scope, text string) godigest.Digest {
	d := godigest.FromString(text)
	c.Keep(s, d, int64(len(text)), strings.NewReader(text))
	return d
}

func load(c *cache.Cache, s cache.Scope, d godigest.Digest) (string, bool) {
	var b bytes.Buffer
	ok := c.Load(s, d, plenty, &b)
	return b.String(), ok
}

// TestBytes reads stored bytes in the next run, and by the digest of another algorithm.
func TestBytes(t *testing.T) {
	w := newWorld(t)
	first := w.open()
	d := keep(first, alice, "archive")
	long := godigest.SHA512.FromString("archive")
	first.Keep(alice, long, 7, strings.NewReader("archive"))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	c := w.open()
	for _, d := range []godigest.Digest{d, long} {
		if got, ok := load(c, alice, d); !ok || got != "archive" {
			t.Errorf("%s: %q, %t", d, got, ok)
		}
	}
	if c.Load(alice, d, 3, &bytes.Buffer{}) {
		t.Error("served more than the limit")
	}
	if _, ok := load(c, alice, "sha256:../../../etc/passwd"); ok {
		t.Error("served for what is no digest")
	}
	w.warned()
}

// TestWhoIsServed tests the rules of Scope: a digest alone grants no access.
func TestWhoIsServed(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	d := keep(c, alice, "private archive")
	if _, ok := load(c, cache.Scope{Source: alice.Source, Identity: "bob", Named: true}, d); ok {
		t.Error("served in the run that stored it")
	}
	apart := alice
	apart.Named = false
	own := keep(c, apart, "archive behind a login of its own")
	c = w.open()
	for _, tt := range []struct {
		name string
		s    cache.Scope
		want bool // bytes that the source serves to every identity that it names them to
		own  bool // bytes behind a separate login
	}{
		{"named to the same identity", alice, true, true},
		{"named to another identity by the same source", cache.Scope{Source: alice.Source, Identity: "bob", Named: true}, true, false},
		{"named by another source", cache.Scope{Source: "https://stranger.test", Identity: "alice", Named: true}, false, false},
		{"locked, with the same identity", apart, true, true},
		{"locked, with another identity", cache.Scope{Source: alice.Source, Identity: "bob"}, false, false},
		{"locked, anonymous", cache.Scope{Source: alice.Source}, false, false},
	} {
		for d, want := range map[godigest.Digest]bool{d: tt.want, own: tt.own} {
			if text, ok := load(c, tt.s, d); ok != want || c.Holds(tt.s, d) != want {
				t.Errorf("%s: %q served %t, want %t", tt.name, text, ok, want)
			}
		}
	}
	c.KeepAnswer(alice, "index", "", d, "etag")
	bob := alice
	bob.Identity = "bob"
	if _, ok := c.Answer(bob, "index", "", nil); ok {
		t.Error("the answer to another identity was served")
	}
	var tag string
	if got, ok := c.Answer(alice, "index", "", &tag); !ok || got != d || tag != "etag" {
		t.Errorf("got %s %q %t", got, tag, ok)
	}
}

// TestDamaged removes damaged entries, with a warning.
func TestDamaged(t *testing.T) {
	w := newWorld(t)
	for _, part := range []string{"blobs", "answers"} {
		for name, damage := range map[string]func(string) error{
			"other bytes": func(f string) error { return os.WriteFile(f, []byte("archivx"), 0o600) },
			"cut short":   func(f string) error { return os.Truncate(f, 3) },
			"empty":       func(f string) error { return os.Truncate(f, 0) },
		} {
			c := w.open()
			d := keep(c, alice, "archive")
			for _, f := range w.files(part) {
				if err := damage(f); err != nil {
					t.Fatal(err)
				}
			}
			if _, ok := load(c, alice, d); ok {
				t.Errorf("%s of %s: served", name, part)
			}
			w.warned("damaged and is not used")
			keep(c, alice, "archive")
			if got, ok := load(c, alice, d); !ok || got != "archive" {
				t.Errorf("%s of %s: not there again", name, part)
			}
			w.warned()
		}
	}
}

// TestStrange ignores files that this program has not written, and links that lead out of the directory.
func TestStrange(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	d := keep(c, alice, "archive")
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := w.files("blobs")[0]
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, file); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(cache.Path(w.dir), "blobs", "notes.txt")
	if err := os.WriteFile(foreign, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := load(c, alice, d); ok {
		t.Error("served what a link leads to")
	}
	w.warned("damaged and is not used")
	keep(c, alice, "archive")
	w.warned("cannot write to the cache")
	if _, err := c.Prune(func(*cache.Entry) bool { return true }); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{foreign, outside} {
		if text, err := os.ReadFile(f); err != nil || len(text) == 0 {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// TestUnusable opens directories that cannot be used: the error lets the run continue without a cache.
func TestUnusable(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare func(dir string) error
		want    string
	}{
		"newer":     {func(dir string) error { return write(dir, "format", "helmsrc cache 2\nsomething\n") }, "newer version"},
		"unknown":   {func(dir string) error { return write(dir, "format", "hello") }, "not a file of helmsrc"},
		"empty":     {func(dir string) error { return write(dir, "format", "") }, "not a file of helmsrc"},
		"half":      {func(dir string) error { return write(dir, "format", "helmsrc cache 1\nabc\n") }, "not a file of helmsrc"},
		"a file":    {func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, "not a directory"},
		"a link":    {func(dir string) error { return os.Symlink(os.TempDir(), dir) }, "not a directory"},
		"directory": {func(dir string) error { return os.MkdirAll(filepath.Join(dir, "format"), 0o700) }, "not a file of this user"},
	} {
		w := newWorld(t)
		if err := tt.prepare(cache.Path(w.dir)); err != nil {
			t.Fatal(err)
		}
		if _, err := cache.Open(w.dir, w.options()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func write(dir, name, text string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)
}

// TestTrim removes the least recently used files when the run ends, and the files of a killed process.
func TestTrim(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	var digests []godigest.Digest
	for i := range 3 {
		w.now = w.now.Add(time.Hour)
		digests = append(digests, keep(c, alice, strings.Repeat(fmt.Sprint(i), 2000)))
	}
	w.now = w.now.Add(time.Hour)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	w.max = 7000
	c = w.open()
	if _, ok := load(c, alice, digests[0]); !ok {
		t.Fatal("the first one is not there")
	}
	w.now = w.now.Add(time.Hour)
	digests = append(digests, keep(c, alice, strings.Repeat("3", 2000)))
	keep(c, alice, strings.Repeat("4", 8000)) // more than the cache holds
	left := filepath.Join(filepath.Dir(w.files("answers")[0]), ".tmp-LEFT")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(left, w.now.AddDate(0, 0, -2), w.now.AddDate(0, 0, -2)); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = w.open()
	var there []bool
	for _, d := range digests {
		_, ok := load(c, alice, d)
		there = append(there, ok)
	}
	if got, want := fmt.Sprint(there), "[true false true true]"; got != want && got != "[true false false true]" {
		t.Errorf("there: %s, want %s", got, want)
	}
	if _, err := os.Lstat(left); err == nil {
		t.Error("what a killed process left behind is still there")
	}
	w.warned()
}

// TestManyAtATime writes, reads and removes the same files at once: a reader receives only the right bytes.
func TestManyAtATime(t *testing.T) {
	w := newWorld(t)
	w.max = 3000
	var group sync.WaitGroup
	for run := range 8 {
		group.Go(func() {
			c, err := cache.Open(w.dir, w.options())
			if err != nil {
				t.Error(err)
				return
			}
			for i := range 20 {
				text := strings.Repeat(fmt.Sprint(i%5), 1000)
				d := keep(c, alice, text)
				if got, ok := load(c, alice, d); ok && got != text {
					t.Errorf("got %q", got)
				}
				if run%4 == 0 {
					if _, err := c.Prune(func(*cache.Entry) bool { return i%2 == 0 }); err != nil {
						t.Error(err)
					}
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	w.warned()
}

// TestNothingInClear verifies that identities and requests are stored only as hashes.
func TestNothingInClear(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	s := c.Scope([]string{"https://charts.test?token=s3cret-in-source"}, []string{"s3cret-password"}, "https://charts.test")
	s.Named = true
	if strings.Contains(fmt.Sprintf("%+v", s), "s3cret") {
		t.Errorf("%+v", s)
	}
	c.KeepAnswer(s, "index", "", keep(c, s, "archive"), "etag")
	for _, f := range w.files("") {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text)+f, "s3cret") {
			t.Errorf("%s has a secret: %s", f, text)
		}
		if fi, err := os.Stat(f); err != nil || fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v %v", f, fi.Mode(), err)
		}
	}
}

// TestPruneAndVerify prunes and verifies the existing entries.
func TestPruneAndVerify(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	private := cache.Scope{Source: "https://private.test", Identity: "alice", Shown: "https://private.test", Private: true, Named: true}
	open, closed := keep(c, alice, "public archive"), keep(c, private, "private archive")
	removed, err := c.Prune(func(e *cache.Entry) bool { return e.Private })
	if err != nil || removed.Files != 3 {
		t.Fatalf("%+v, %v", removed, err)
	}
	if c.Holds(private, closed) || !c.Holds(alice, open) {
		t.Error("the wrong one went")
	}
	if read, damaged, err := c.Verify(); read != 3 || len(damaged) != 0 || err != nil {
		t.Errorf("%d, %v, %v", read, damaged, err)
	}
	if err := os.WriteFile(w.files("blobs")[0], []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, damaged, err := c.Verify(); len(damaged) != 1 || damaged[0].Digest != open || err != nil {
		t.Errorf("%v, %v", damaged, err)
	}
	if _, damaged, err := c.Verify(); len(damaged) != 0 || err != nil {
		t.Errorf("%v, %v", damaged, err)
	}
}

// TestPruneFails verifies that a failure to remove bytes or an answer is returned.
func TestPruneFails(t *testing.T) {
	for _, kind := range []string{"blobs", "answers"} {
		w := newWorld(t)
		c := w.open()
		keep(c, alice, "archive")
		_, err := c.Prune(func(*cache.Entry) bool {
			for _, file := range w.files(kind) {
				if err := errors.Join(os.Remove(file), os.MkdirAll(filepath.Join(file, "in"), 0o700)); err != nil {
					t.Error(err)
				}
			}
			return true
		})
		if err == nil {
			t.Errorf("%s: no error", kind)
		}
	}
}

// TestNone verifies that a nil cache is always empty.
func TestNone(t *testing.T) {
	var c *cache.Cache
	d := keep(c, alice, "archive")
	c.KeepAnswer(alice, "index", "", d, nil)
	if _, ok := load(c, alice, d); ok || c.Holds(alice, d) {
		t.Error("served by nothing")
	}
	if _, ok := c.Answer(alice, "index", "", nil); ok {
		t.Error("answered by nothing")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
