package tree

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// plant writes files below dir; content that begins with "-> " makes a link, a name that ends in a slash a directory,
// a name that ends in "*" an executable file.
func plant(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := plantOne(filepath.Join(dir, filepath.FromSlash(name)), name, files[name]); err != nil {
			t.Fatal(err)
		}
	}
}

func plantOne(at, name, content string) error {
	if strings.HasSuffix(name, "/") {
		return os.MkdirAll(at, 0o777)
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
		return err
	}
	if target, ok := strings.CutPrefix(content, "-> "); ok {
		return os.Symlink(target, at)
	}
	if at, ok := strings.CutSuffix(at, "*"); ok {
		return os.WriteFile(at, []byte(content), 0o755)
	}
	return os.WriteFile(at, []byte(content), 0o644)
}

func rootOf(t testing.TB, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	})
	return root
}

func planted(t testing.TB, files map[string]string) *os.Root {
	t.Helper()
	dir := t.TempDir()
	plant(t, dir, files)
	return rootOf(t, dir)
}

// contents returns the files of a directory in the form of plant.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if d.IsDir() {
			entries, err := os.ReadDir(p)
			if len(entries) == 0 {
				files[name+"/"] = ""
			}
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		if fi.Mode()&0o111 != 0 {
			name += "*"
		}
		data, err := os.ReadFile(p)
		files[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func wantLimit(t *testing.T, err error, text string) {
	t.Helper()
	var limit *finding.Problem
	if !errors.As(err, &limit) || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want a limit: %q", err, text)
	}
}

func TestAll(t *testing.T) {
	choose := func(c Choice) Filter { return func(string, bool) Choice { return c } }
	for _, tt := range []struct {
		filters []Filter
		want    Choice
	}{
		{nil, Keep},
		{[]Filter{nil, choose(Keep)}, Keep},
		{[]Filter{choose(Keep), choose(Drop), choose(Keep)}, Drop},
		{[]Filter{choose(DropAll), choose(Drop)}, DropAll},
	} {
		if got := All(tt.filters...)("x", false); got != tt.want {
			t.Errorf("got %v, want %v", got, tt.want)
		}
	}
}

// deep returns the path of a file below n directories.
func deep(n int) string { return path.Join(strings.Repeat("d/", n), "file") }
