package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Links planted in the artifacts directory lead neither out of it nor to another object.
func TestPlantedLinks(t *testing.T) {
	const secret = "do not touch"
	for _, tt := range []struct {
		name   string
		link   string // its place; the directories above are real
		inside bool   // leads to another place of the artifacts directory, else out of it
	}{
		{"state directory", ".helmsrc", false},
		{"state version", ".helmsrc/v1", false},
		{"state kind", ".helmsrc/v1/helmchart", false},
		{"state namespace", ".helmsrc/v1/helmchart/apps", false},
		{"state namespace, inside", ".helmsrc/v1/helmchart/apps", true},
		{"kind", "helmchart", false},
		{"namespace", "helmchart/apps", false},
		{"object", "helmchart/apps/podinfo", false},
		{"object, inside", "helmchart/apps/podinfo", true},
		{"lock", ".helmsrc/v1/helmchart/apps/podinfo.lock", false},
		{"lock, inside", ".helmsrc/v1/helmchart/apps/podinfo.lock", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t)
			outside := t.TempDir()
			if tt.inside {
				outside = filepath.Join(s.Dir(), "other")
			}
			link := filepath.Join(s.Dir(), filepath.FromSlash(tt.link))
			for _, dir := range []string{outside, filepath.Dir(link)} {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{"x-0.0.1.tgz", "podinfo.json", ".tmp-1", "podinfo.json.tmp", "latest.tar.gz"} {
				if err := os.WriteFile(filepath.Join(outside, name), []byte(secret), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			before := files(t, outside)
			plant(t, outside, link)

			if err := useAll(t, s); err == nil {
				t.Error("nothing is refused")
			}
			wantFiles(t, outside, before...)
			for _, name := range before {
				if data, err := os.ReadFile(filepath.Join(outside, name)); string(data) != secret {
					t.Errorf("%s is now %q, %v", name, data, err)
				}
			}
		})
	}
}

func plant(t *testing.T, target, link string) {
	t.Helper()
	rel, err := filepath.Rel(filepath.Dir(link), target)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(rel, link); err != nil {
		t.Fatal(err)
	}
}

// useAll calls every operation on an object and returns their errors.
func useAll(t *testing.T, s *Store) error {
	t.Helper()
	var errs []error
	add := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	unlock, err := s.Lock(t.Context(), chartKey)
	add(err)
	if err == nil {
		p, err := s.Create(chartKey)
		add(err)
		if err == nil {
			_, err = p.Commit("x-1.0.0.tgz", LinkLatest)
			add(err)
		}
		add(s.Remember(chartKey, &Record{}, nil))
		_, err = s.Collect(chartKey, "x-1.0.0.tgz")
		add(err)
		add(s.Remove("helmchart/apps/podinfo/x-0.0.1.tgz"))
		add(unlock())
	}
	if err := s.Verify("helmchart/apps/podinfo/x-0.0.1.tgz", ""); !errors.Is(err, fs.ErrNotExist) {
		add(err)
		var altered *AlteredError
		if errors.As(err, &altered) {
			t.Errorf("Verify reads through the link: %v", err)
		}
	}
	_, err = s.Prune(t.Context(), func(Key) bool { return false })
	add(err)
	return errors.Join(errs...)
}

// Links in the place of single files are replaced or skipped.
func TestPlantedFiles(t *testing.T) {
	s := newStore(t)
	target := filepath.Join(t.TempDir(), "target")
	if err := os.WriteFile(target, []byte("do not touch"), 0o600); err != nil {
		t.Fatal(err)
	}
	unlock := lock(t, s, chartKey)
	put(t, s, chartKey, "x-0.0.1.tgz", "", "first")
	for _, name := range []string{
		"helmchart/apps/podinfo/x-1.0.0.tgz",
		"helmchart/apps/podinfo/latest.tar.gz",
		".helmsrc/v1/helmchart/apps/podinfo.json",
		".helmsrc/v1/helmchart/apps/podinfo.json.tmp",
		".helmsrc/v1/helmchart/apps/podinfo.next",
	} {
		plant(t, target, filepath.Join(s.Dir(), filepath.FromSlash(name)))
	}
	var recordError *RecordError
	if _, err := s.Recall(chartKey); !errors.As(err, &recordError) {
		t.Errorf("Recall: %v", err)
	}
	a := put(t, s, chartKey, "x-1.0.0.tgz", LinkLatest, "second")
	remember(t, s, chartKey, &Record{Fingerprint: "f"})
	if err := s.Verify(a.Path, a.Digest); err != nil {
		t.Error(err)
	}
	unlock()
	wantFiles(t, s.Dir(),
		".helmsrc/v1/helmchart/apps/podinfo.json",
		"helmchart/apps/podinfo/latest.tar.gz -> x-1.0.0.tgz",
		"helmchart/apps/podinfo/x-0.0.1.tgz",
		"helmchart/apps/podinfo/x-1.0.0.tgz")
	if data, err := os.ReadFile(target); string(data) != "do not touch" {
		t.Errorf("the target is now %q, %v", data, err)
	}
}

// A file in the place of the artifacts directory or of a directory below is an error, and stays.
func TestFileInPlaceOfDirectory(t *testing.T) {
	for _, name := range []string{"", "helmchart", "helmchart/apps", "helmchart/apps/podinfo", ".helmsrc"} {
		dir := filepath.Join(t.TempDir(), "artifacts")
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := openStore(t, dir, testOptions())
		var dirError *DirectoryError
		if err := useAll(t, s); !errors.As(err, &dirError) {
			t.Errorf("%q: %v", name, err)
		}
		if data, err := os.ReadFile(file); string(data) != "mine" {
			t.Errorf("%q is now %q, %v", name, data, err)
		}
	}
}

func TestNames(t *testing.T) {
	for name, valid := range map[string]bool{
		"a": true, "a b~": true, "é": true, "a.": true, "index.yaml": true,
		"": false, ".": false, ".a": false, "a/b": false, `a\b`: false, "\xff": false, "\x01\x02": false, "\x7f": false, "\u0085": false, "a\u200e": false, "a\u2028": false, "a\u2029": false,
	} {
		if validName(name) != valid {
			t.Errorf("%q: %t", name, !valid)
		}
	}
	for file, is := range map[string]bool{
		"a.tgz": true, "a.tar.gz": true, "index-a.yaml": true, "index.yaml": false, "latest.tar.gz": false, "index-a": false, "a.yaml": false, "a": false, ".a.tgz": false,
	} {
		if isArtifact(file) != is {
			t.Errorf("%q: %t", file, !is)
		}
	}
	for artifact, is := range map[string]bool{
		"helmchart/a/b/c.tgz": true, "HelmChart/a/b/c.tgz": false, "helmchart/a/b/.c": false, "helmchart/../b/c.tgz": false, "helmchart/a/b": false, "helmchart/a/b/c/d": false,
	} {
		if k, err := splitPath(artifact); (err == nil) != is || is && k != (Key{"helmchart", "a", "b"}) || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, %v", artifact, k, err)
		}
	}
	for _, c := range []struct {
		key  Key
		file string
		want string
	}{
		{Key{"HelmChart", "a", "b"}, "c.tgz", "helmchart/a/b/c.tgz"},
		{Key{"HelmChart", "..", "b"}, "c.tgz", ""},
		{Key{"HelmChart", "a", "b"}, "../c.tgz", ""},
	} {
		if got, err := c.key.Path(c.file); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%v, %s: %q, %v", c.key, c.file, got, err)
		}
	}
	for n, want := range map[int]string{maxStateName: ".helmsrc/v1/k/n/" + strings.Repeat("x", maxStateName), maxStateName + 1: ".helmsrc/v1/k/n/" + strings.Repeat("x", maxStateName) + "/x"} {
		if got := (Key{"k", "n", strings.Repeat("x", n)}).state(); got != want {
			t.Errorf("%d characters: %s", n, got)
		}
	}
}

// For every name of an object and its artifact: either it is refused, or there is exactly one more file, at the path
// of these names.
func FuzzKey(f *testing.F) {
	for _, seed := range [][4]string{
		{"HelmChart", "apps", "podinfo", "podinfo-6.0.0+x.tgz"},
		{"..", "..", "..", "passwd.tgz"},
		{"HelmChart", "a/b", "c", "x.tgz"},
		{"HelmChart", "a", "../c", "../x.tgz"},
		{"HelmChart", "a", `..\c`, `..\x.tgz`},
		{"HelmChart", "a", "c", "/etc/x.tgz"},
		{"HelmChart", "a", "c\x00", "x\x00.tgz"},
		{"HelmChart", "a\n", "c", "x\r\n.tgz"},
		{".helmsrc", "v1", "helmchart", "x.tgz"},
		{"", "", "", ""},
		{".", ".", ".", ".tgz"},
		{"HelmChart", "a", "c.json.tmp", "sha256:00.tar.gz"},
		{"İ", "K", "é\xff", "index-é.yaml"},
		{"HelmChart", "a", strings.Repeat("x", 300), strings.Repeat("y", 300) + ".tgz"},
		{"con", "nul", "a:b", "c:d.tgz"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, kind, namespace, name, file string) {
		top := t.TempDir()
		s := openStore(t, filepath.Join(top, "artifacts"), testOptions())
		key := Key{kind, namespace, name}
		a, err := storeAs(t, s, key, file)
		left := files(t, top)
		if err != nil {
			if len(left) > 0 {
				t.Fatalf("refused (%v), but there is %q", err, left)
			}
			return
		}
		if len(left) != 1 || left[0] != "artifacts/"+a.Path {
			t.Fatalf("stored %s, but there is %q", a.Path, left)
		}
		p, err := key.Path(file)
		if err != nil || p != a.Path || strings.Count(p, "/") != 3 || strings.ContainsAny(p, "\\\x00\n\x1b") {
			t.Fatalf("path %q, stored %q, %v", p, a.Path, err)
		}
		if err := s.Verify(a.Path, a.Digest); err != nil {
			t.Fatal(err)
		}
		o := testOptions()
		o.Kinds = []string{kind}
		keys, err := openStore(t, s.Dir(), o).Keys()
		if err != nil || len(keys) != 1 || keys[0] != NewKey(kind, namespace, name) {
			t.Fatalf("Keys: %q, %v", keys, err)
		}
	})
}

func storeAs(t *testing.T, s *Store, key Key, file string) (Artifact, error) {
	unlock, err := s.Lock(t.Context(), key)
	if err != nil {
		return Artifact{}, err
	}
	defer unlock()
	p, err := s.Create(key)
	if err != nil {
		return Artifact{}, err
	}
	return p.Commit(file, "")
}
