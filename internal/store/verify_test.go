package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	godigest "github.com/opencontainers/go-digest"
)

// §12 case 15: a stored artifact is checked before it is used.
func TestVerify(t *testing.T) {
	const file = "helmrepository/apps/podinfo/index-1.yaml"
	right, wrong := godigest.FromString("stored").String(), godigest.FromString("other").String()
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, s *Store)
		path    string
		digest  string
		altered string // the message, if it counts as altered
		missing bool
	}{
		{name: "case 15: right", path: file, digest: right},
		{name: "case 15: sha512", path: file, digest: godigest.SHA512.FromString("stored").String()},
		{name: "case 15: missing", path: "helmrepository/apps/podinfo/index-2.yaml", digest: right, missing: true},
		{name: "case 15: no directory", path: "helmrepository/apps/other/index-2.yaml", digest: right, missing: true},
		{name: "case 15: empty digest", path: file, altered: "artifact has no digest"},
		{name: "case 15: wrong digest", path: file, digest: wrong, altered: "computed digest doesn't match '" + wrong + "'"},
		{name: "case 15: malformed digest", path: file, digest: "md5",
			altered: "failed to parse artifact digest 'md5': no algorithm in front"},
		{name: "case 15: unknown algorithm", path: file, digest: "md5:00",
			altered: "failed to parse artifact digest 'md5:00': algorithm must be one of sha256, sha384, sha512"},
		{name: "case 15: truncated", path: file, digest: right, altered: "computed digest doesn't match '" + right + "'",
			prepare: func(t *testing.T, s *Store) { alter(t, s, file, "stor") }},
		{name: "missing and no digest", path: "helmrepository/apps/podinfo/index-2.yaml", missing: true},
		{name: "a link counts as missing", path: "helmrepository/apps/podinfo/index.yaml", digest: right, missing: true},
		{name: "a directory counts as missing", path: "helmrepository/apps/podinfo/index-3.yaml", digest: right, missing: true,
			prepare: func(t *testing.T, s *Store) {
				if err := os.Mkdir(filepath.Join(s.Dir(), "helmrepository/apps/podinfo/index-3.yaml"), 0o700); err != nil {
					t.Fatal(err)
				}
			}},
		{name: "no path", path: "", digest: right, missing: true},
		{name: "absolute path", path: "/" + file, digest: right, missing: true},
		{name: "climbing path", path: "helmrepository/apps/podinfo/../podinfo/index-1.yaml", digest: right, missing: true},
		{name: "path of a state file", path: ".helmsrc/v1/helmrepository/podinfo.json", digest: right, missing: true},
		{name: "kind in upper case", path: "HelmRepository/apps/podinfo/index-1.yaml", digest: right, missing: true},
		{name: "short path", path: "helmrepository/apps/podinfo", digest: right, missing: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t)
			lockAndPut(t, s, repoKey, "index-1.yaml", LinkIndex, "stored")
			if tt.prepare != nil {
				tt.prepare(t, s)
			}
			err := s.Verify(tt.path, tt.digest)
			var altered *AlteredError
			if got := errors.As(err, &altered); got != (tt.altered != "") || got && err.Error() != tt.altered {
				t.Errorf("got %v, want altered: %q", err, tt.altered)
			}
			if got := errors.Is(err, fs.ErrNotExist); got != tt.missing {
				t.Errorf("got %v, want missing: %v", err, tt.missing)
			}
			if err != nil && tt.altered == "" && !tt.missing {
				t.Error(err)
			}
		})
	}
}

// §12 case 15: an altered file is removed, and then counts as missing.
func TestRemove(t *testing.T) {
	s := newStore(t)
	defer lock(t, s, repoKey)()
	a := put(t, s, repoKey, "index-1.yaml", LinkIndex, "stored")
	for _, path := range []string{
		a.Path,
		a.Path, // no longer there
		"helmrepository/apps/podinfo/../podinfo/index-1.yaml",
		".helmsrc/v1/helmrepository/podinfo.json",
		"",
	} {
		if err := s.Remove(path); err != nil {
			t.Errorf("Remove(%q): %v", path, err)
		}
	}
	if err := s.Verify(a.Path, a.Digest); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("case 15: Verify after Remove: %v", err)
	}
	if err := os.Mkdir(filepath.Join(s.Dir(), "helmrepository/apps/podinfo/index-2.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove("helmrepository/apps/podinfo/index-2.yaml"); err == nil {
		t.Error("Remove takes a directory")
	}
}
