package generate

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
)

// A tree in memory behaves like directories: random operations make the same files and directories as the same operations
// on disk, with the globs of source-watcher.
func TestLikeOnDisk(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	oneOf := func(list ...string) string { return list[random.IntN(len(list))] }
	failed := 0
	const rounds = 200
	for i := range rounds {
		source := map[string]string{}
		for range 1 + random.IntN(8) {
			name := oneOf("a", "b", "c.md", "d.yaml", ".h")
			for range random.IntN(3) {
				name = oneOf("a", "b", "dir", ".h") + "/" + name
			}
			source[name] = fmt.Sprint(random.IntN(100))
		}
		var ops []swv1.CopyOperation
		for range 1 + random.IntN(3) {
			op := swv1.CopyOperation{
				From: "@s/" + oneOf("", "a", "a/", "b", "dir", "a/b", "*", "**", "a/*", "a/**", "*/*", "**/*.md", "?", "dir/**", "*/b", "[ab]", "c.md", "./a", "./a/*"),
				To:   "@artifact/" + oneOf("", "to", "to/", "a", "a/b", "x/y/", "d.yaml"),
			}
			for range random.IntN(3) {
				op.Exclude = append(op.Exclude, oneOf("*.md", "a", "b", "a/**", "**/b", "dir", "*", ".h", "a/b/*", "**/*.yaml"))
			}
			ops = append(ops, op)
		}
		got, err := inMemory(t, source, ops)
		want, wantErr := withFiles(t, source, ops)
		if (err == nil) != (wantErr == nil) || err == nil && !slices.Equal(got, want) {
			t.Fatalf("round %d: of %v, %+v makes\n%q, %v\non disk it makes\n%q, %v", i, source, ops, got, err, want, wantErr)
		}
		if err != nil {
			failed++
		}
	}
	if failed < rounds/20 || failed > rounds*19/20 {
		t.Errorf("%d of %d rounds fail: too few are like each other", failed, rounds)
	}
}

// inMemory describes the result of Build.
func inMemory(t *testing.T, source map[string]string, ops []swv1.CopyOperation) ([]string, error) {
	t.Helper()
	tree := NewTree()
	for name, content := range source {
		if tree.Add(name, File{Content: text(content)}) != nil {
			delete(source, name) // where a directory is
		}
	}
	spec := &swv1.ArtifactGeneratorSpec{
		Sources:         []swv1.SourceReference{{Alias: "s", Kind: "GitRepository", Name: "s"}},
		OutputArtifacts: []swv1.OutputArtifact{{Name: "out", Copy: ops}},
	}
	artifacts, _, err := Build(t.Context(), spec, map[string]*Tree{"s": tree})
	if err != nil {
		return nil, err
	}
	made := artifacts[0].Tree
	list := made.Dirs()
	for _, name := range made.Names() {
		f, _ := made.File(name)
		data, err := f.Content.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, name+"="+string(data))
	}
	slices.Sort(list)
	return list, nil
}

// withFiles carries the operations out in directories.
func withFiles(t *testing.T, source map[string]string, ops []swv1.CopyOperation) ([]string, error) {
	t.Helper()
	d := &disk{t.TempDir(), t.TempDir()}
	for name, content := range source {
		if err := d.write(d.from, name, content); err != nil {
			t.Fatal(err)
		}
	}
	for _, op := range ops {
		if err := d.copy(op); err != nil {
			return nil, err
		}
	}
	var list []string
	err := filepath.WalkDir(d.to, func(p string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(d.to, p)
		name = filepath.ToSlash(name)
		switch {
		case err != nil || name == ".":
			return err
		case e.IsDir():
			list = append(list, name)
			return nil
		}
		data, err := os.ReadFile(p)
		list = append(list, name+"="+string(data))
		return err
	})
	slices.Sort(list)
	return list, err
}

type disk struct{ from, to string }

func (d *disk) write(root, name, content string) error {
	p := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		return err
	}
	return os.WriteFile(p, []byte(content), 0o600)
}

func (d *disk) copy(op swv1.CopyOperation) error {
	pattern := strings.TrimPrefix(op.From, "@s/")
	to := strings.TrimPrefix(op.To, "@artifact/")
	if strings.ContainsAny(pattern, "*?[]") {
		return d.glob(op, pattern, to)
	}
	name := filepath.Clean(pattern)
	info, err := os.Stat(filepath.Join(d.from, name))
	if err != nil {
		return err
	}
	if info.IsDir() {
		return d.tree(op, name, filepath.Join(to, filepath.Base(name)), name)
	}
	if leftOut(op, name, ".") {
		return nil
	}
	if there, err := os.Stat(filepath.Join(d.to, to)); strings.HasSuffix(op.To, "/") || err == nil && there.IsDir() {
		to = filepath.Join(to, filepath.Base(name))
	}
	return d.file(name, to)
}

func (d *disk) glob(op swv1.CopyOperation, pattern, to string) error {
	matches, err := fs.Glob(os.DirFS(d.from), pattern)
	if err != nil || len(matches) == 0 {
		return fmt.Errorf("%d matches: %v", len(matches), err)
	}
	base := "."
	for _, part := range strings.Split(pattern, "/") {
		if strings.ContainsAny(part, "*?[]") {
			break
		}
		base = filepath.Join(base, part)
	}
	some := false
	for _, match := range matches {
		if leftOut(op, match, base) {
			continue
		}
		some = true
		rel := match
		if prefix, ok := strings.CutSuffix(pattern, "/**"); ok {
			rel = strings.TrimPrefix(match, prefix+"/")
		}
		info, err := os.Stat(filepath.Join(d.from, match))
		switch {
		case err != nil:
			return err
		case info.IsDir():
			err = d.tree(op, match, filepath.Join(to, rel), base)
		default:
			err = d.file(match, filepath.Join(to, rel))
		}
		if err != nil {
			return err
		}
	}
	if !some {
		return fmt.Errorf("all are excluded")
	}
	return nil
}

func (d *disk) tree(op swv1.CopyOperation, dir, to, base string) error {
	return fs.WalkDir(os.DirFS(d.from), dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		switch {
		case name != dir && leftOut(op, name, base) && e.IsDir():
			return fs.SkipDir
		case name != dir && leftOut(op, name, base):
			return nil
		case e.IsDir():
			return os.MkdirAll(filepath.Join(d.to, to, rel), 0o755)
		}
		return d.file(name, filepath.Join(to, rel))
	})
}

func (d *disk) file(name, to string) error {
	data, err := os.ReadFile(filepath.Join(d.from, name))
	if err != nil {
		return err
	}
	return d.write(d.to, to, string(data))
}

func leftOut(op swv1.CopyOperation, name, base string) bool {
	ways := []string{name}
	if rel, below := strings.CutPrefix(name, base+"/"); below {
		ways = append(ways, rel)
	}
	return slices.ContainsFunc(op.Exclude, func(pattern string) bool {
		return !strings.Contains(pattern, "/") && doublestar.MatchUnvalidated(pattern, filepath.Base(name)) ||
			slices.ContainsFunc(ways, func(way string) bool { return doublestar.MatchUnvalidated(pattern, way) })
	})
}
