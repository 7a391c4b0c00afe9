package rewrite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/helmsrc/helmsrc/internal/file"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func find(t *testing.T, name string) *File {
	t.Helper()
	found := Find(t.Context(), Options{Names: []string{name}})
	if len(found.Files) != 1 {
		t.Fatalf("%d files, %v", len(found.Files), found.Errors)
	}
	return found.Files[0]
}

// A file that differs from the one that was read is not replaced.
func TestReplaceChanged(t *testing.T) {
	for what, change := range map[string]func(name string) error{
		"written": func(name string) error { return os.WriteFile(name, []byte("other\n"), 0o600) },
		"longer":  func(name string) error { return os.WriteFile(name, []byte("old\nmore\n"), 0o600) },
		"replaced": func(name string) error {
			return errors.Join(os.Remove(name), os.WriteFile(name, []byte("old\n"), 0o600))
		},
		"gone": os.Remove,
	} {
		name := write(t, filepath.Join(t.TempDir(), "a.yaml"), "old\n")
		f := find(t, name)
		if what == "replaced" { // a new file may get the number of the old one
			write(t, filepath.Join(filepath.Dir(name), "keep"), "")
			if err := os.Rename(name, name+".old"); err != nil {
				t.Fatal(err)
			}
			change = func(name string) error { return os.WriteFile(name, []byte("old\n"), 0o600) }
		}
		if err := change(name); err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadFile(name)
		if err := f.Replace([]byte("new\n")); err == nil || what != "gone" && !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v", what, err)
		}
		if after, _ := os.ReadFile(name); !bytes.Equal(before, after) {
			t.Errorf("%s: it is %q", what, after)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(name), ".helmsrc-*")); len(left) > 0 {
			t.Errorf("%s: %v is left", what, left)
		}
	}
}

// Of many runs at once, one succeeds, and the rest return errors. A reader sees a whole text.
func TestReplaceAtOnce(t *testing.T) {
	name := write(t, filepath.Join(t.TempDir(), "a.yaml"), "old\n")
	const runs = 20
	var files [runs]*File
	for i := range files {
		files[i] = find(t, name)
	}
	var errs [runs]error
	var group sync.WaitGroup
	for i := range runs {
		group.Go(func() { errs[i] = files[i].Replace(fmt.Appendf(nil, "new %d\n", i)) })
	}
	group.Wait()
	won := -1
	for i, err := range errs {
		switch {
		case err == nil && won >= 0:
			t.Errorf("both %d and %d won", won, i)
		case err == nil:
			won = i
		case !errors.Is(err, ErrChanged) && !errors.Is(err, ErrBusy):
			t.Error(err)
		}
	}
	if text, err := os.ReadFile(name); string(text) != fmt.Sprintf("new %d\n", won) {
		t.Errorf("%d won, it is %q, %v", won, text, err)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.yaml", "b.yml", "c.json", "D.YAML", ".dot.yaml", ".git/x.yaml", "sub/Kustomization", "sub/kustomization", "skip/x.yaml", ".hidden/x.yaml"} {
		write(t, filepath.Join(dir, name), "x: 1\n")
	}
	found := Find(t.Context(), Options{Names: []string{dir, filepath.Join(dir, "*.yaml"), filepath.Join(dir, "a.yaml")}, Recursive: true, Skip: []string{filepath.Join(dir, "skip")}})
	var names []string
	for _, f := range found.Files {
		name, _ := filepath.Rel(dir, f.Name)
		names = append(names, filepath.ToSlash(name))
	}
	if got := strings.Join(names, " "); got != ".dot.yaml a.yaml b.yml sub/Kustomization" || len(found.Errors) > 0 {
		t.Errorf("%s, %v", got, found.Errors)
	}
	if found := Find(t.Context(), Options{Names: []string{filepath.Join(dir, "nowhere")}}); len(found.Errors) != 1 {
		t.Errorf("%v", found.Errors)
	}
}

// TestFindLinks: a link to a file counts if it stays in the repository; a link that leads out is reported and not edited.
func TestFindLinks(t *testing.T) {
	dir, elsewhere := t.TempDir(), write(t, filepath.Join(t.TempDir(), "x.yaml"), "")
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	write(t, at(".git/config"), "")
	for link, to := range map[string]string{
		"apps/in.yaml": write(t, at("other/in.yaml"), ""), "apps/out.yaml": elsewhere, "apps/dangling.yaml": at("nothing"), "apps/dir.yaml": at("other"),
		"outside": filepath.Dir(elsewhere),
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(at(link)), 0o755), os.Symlink(to, at(link))); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for _, test := range []struct {
		names                  []string
		files, outside, errors int
	}{
		{[]string{"apps"}, 1, 1, 0},
		{[]string{"apps", "other/in.yaml", "apps/in.yaml"}, 1, 1, 0},
		{[]string{"apps/in.yaml"}, 1, 0, 0},
		{[]string{"apps/out.yaml"}, 0, 0, 1},
		{[]string{"apps/*.yaml"}, 1, 1, 1}, // one is dangling
		{[]string{"outside/x.yaml"}, 0, 0, 1},
		{[]string{"outside/*"}, 0, 1, 0},
		{[]string{"none/*"}, 0, 0, 0},
		{[]string{"none"}, 0, 0, 1},
	} {
		found := Find(t.Context(), Options{Names: test.names})
		if len(found.Files) != test.files || len(found.Outside) != test.outside || len(found.Errors) != test.errors {
			t.Errorf("%v: %d files, outside %v, errors %v", test.names, len(found.Files), found.Outside, found.Errors)
		}
	}

	found := Find(t.Context(), Options{Names: []string{"apps"}})
	if f := found.File("other/in.yaml"); f == nil || f.Name != filepath.Join("apps", "in.yaml") || found.File("other") != nil || found.File("nothing") != nil {
		t.Errorf("%+v", f)
	}
	write(t, at("more.yaml"), "")
	write(t, at("more.txt"), "")
	write(t, at("large.yaml"), strings.Repeat("#", maxFile+1))
	errs := found.Read(t.Context(), []string{"more.yaml", "more.txt", "other/in.yaml", "outside/x.yaml", "large.yaml", "none.yaml"})
	if len(errs) != 1 || len(found.Files) != 2 || found.File("more.yaml") == nil {
		t.Errorf("%d files, %v", len(found.Files), errs)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if found := Find(ended, Options{Names: []string{"apps", "more.yaml"}}); len(found.Files) > 0 {
		t.Errorf("ended: %d files", len(found.Files))
	}
	for name, want := range map[string]error{"apps/out.yaml": file.ErrOutside, "other": ErrIrregular, "none.yaml": fs.ErrNotExist, "apps/in.yaml": nil} {
		if _, err := Read(filepath.FromSlash(name), 1); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := Writable(filepath.FromSlash(name)); want == file.ErrOutside && !errors.Is(err, want) {
			t.Errorf("%s can be written: %v", name, err)
		}
	}
	if err := Writable("outside/new.yaml"); !errors.Is(err, file.ErrOutside) {
		t.Errorf("over a link: %v", err)
	}
}

// TestCreate writes a new file, and does not change an existing one.
func TestCreate(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	if err := Create(name, []byte("first")); err != nil {
		t.Error(err)
	}
	if err := Create(name, []byte("second")); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if text, err := os.ReadFile(name); string(text) != "first" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(name)); len(entries) != 1 || err != nil {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestWritable: an existing or a new file can be written, also through a link. Other names are refused with the cause.
func TestWritable(t *testing.T) {
	dir := t.TempDir()
	there := write(t, filepath.Join(dir, "there"), "")
	for name, to := range map[string]string{"link": there, "dangling": filepath.Join(dir, "nothing"), "to a directory": dir} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(write(t, filepath.Join(dir, "read-only"), ""), 0o444); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{
		"there": nil, "new": nil, "link": nil, "dangling": ErrIrregular, "to a directory": ErrIrregular, "": ErrIrregular,
		"read-only": ErrReadOnly, "missing/new": fs.ErrNotExist,
	} {
		err := Writable(filepath.Join(dir, filepath.FromSlash(name)))
		if _, named := errors.AsType[*fs.PathError](err); !errors.Is(err, want) || named != (want != nil) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if entries, err := os.ReadDir(dir); len(entries) != 5 || err != nil {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestWrite writes new files, replaces links without following them, and returns errors.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	outside := write(t, filepath.Join(dir, "outside"), "a")
	name := filepath.Join(dir, "in", "b")
	write(t, filepath.Join(dir, "in", "other"), "")
	if err := os.Symlink(outside, name); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"c", "d"} {
		if err := Write(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	if got, err := os.ReadFile(outside); err != nil || string(got) != "a" {
		t.Errorf("the link was followed: %q, %v", got, err)
	}
	if err := Write(filepath.Join(dir, "none", "b"), nil); err == nil {
		t.Error("a file in no directory was written")
	}
}
