package store

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

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

// noSymlinks is a file system, or a user, that may not make symbolic links.
type noSymlinks struct{ *os.Root }

func (noSymlinks) Symlink(string, string) error { return fs.ErrPermission }

func TestLinkWithoutSymlinks(t *testing.T) {
	s := newStore(t)
	defer lock(t, s, chartKey)()
	a := put(t, s, chartKey, "x-1.0.0.tgz", "", "first")
	dir, err := os.OpenRoot(filepath.Join(s.Dir(), filepath.FromSlash(path.Dir(a.Path))))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := makeLink(noSymlinks{dir}, "x-1.0.0.tgz", LinkLatest); err != nil {
		t.Fatal(err)
	}
	if data, err := dir.ReadFile(LinkLatest); string(data) != "first" || err != nil {
		t.Errorf("reads %q, %v", data, err)
	}
	if err := makeLink(noSymlinks{dir}, "x-9.9.9.tgz", "x"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("with neither: %v", err)
	}
	// A hard link is not an artifact, and the next link replaces it.
	if n, err := s.Collect(chartKey, a.Path); n != 0 || err != nil {
		t.Errorf("collected %d, %v", n, err)
	}
	put(t, s, chartKey, "x-2.0.0.tgz", LinkLatest, "second")
	wantFiles(t, s.Dir(),
		"helmchart/apps/podinfo/latest.tar.gz -> x-2.0.0.tgz",
		"helmchart/apps/podinfo/x-1.0.0.tgz",
		"helmchart/apps/podinfo/x-2.0.0.tgz")
}
