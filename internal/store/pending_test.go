package store

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	godigest "github.com/opencontainers/go-digest"
)

func TestPending(t *testing.T) {
	s := newStore(t)
	defer lock(t, s, chartKey)()
	p, err := s.Create(chartKey)
	if err != nil {
		t.Fatal(err)
	}
	copied := "a copy of another file"
	if err := p.Take(strings.NewReader(copied), godigest.FromString(copied)); err != nil || p.Digest() != godigest.FromString(copied) {
		t.Fatal(p.Digest(), err)
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

// TestReplacedTwice: two runs in turn replace the artifact of a recorded object, and neither records it. The second ends before its
// artifact has its name.
func TestReplacedTwice(t *testing.T) {
	s := newStore(t)
	defer lock(t, s, chartKey)()
	recorded := put(t, s, chartKey, "podinfo-1.0.0.tgz", "", "recorded")
	remember(t, s, chartKey, &Record{})
	put(t, s, chartKey, "podinfo-1.0.0.tgz", "", "second")
	next := Artifact{Path: recorded.Path, Digest: godigest.FromString("third").String()}
	key, err := s.stored(chartKey)
	if err == nil {
		err = s.announce(s.view, key, next)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(recorded.Path, recorded.Digest); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the artifact looks altered: %v", err)
	}
}
