package git

import (
	"os"
	"path/filepath"
	"testing"

	git "github.com/go-git/go-git/v5"
)

func TestTracked(t *testing.T) {
	dir := t.TempDir()
	repo, err := git.PlainInit(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	worktree, err := repo.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	for name, tracked := range map[string]bool{"a/.helmsrc/v1/x": true, "b/.helmsrc/x": false, "c/b/.helmsrc/x": true, "d/.helmsrc2": true, "d/.helmsrc/x": false} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if !tracked {
			continue
		}
		if _, err := worktree.Add(name); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{"a": true, "b": false, "c/b": true, "c/b/../../a": true, "d": false, "none": false} {
		if got, err := Tracked(filepath.Join(dir, name, ".helmsrc")); got != want || err != nil {
			t.Errorf("Tracked(%s) = %v, %v, want %v", name, got, err, want)
		}
	}
	// A worktree or a submodule keeps its Git directory in another place.
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Rename(filepath.Join(dir, ".git"), elsewhere); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: "+elsewhere+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a": true, "b": false} {
		if got, err := Tracked(filepath.Join(dir, name, ".helmsrc")); got != want || err != nil {
			t.Errorf("with an index elsewhere Tracked(%s) = %v, %v", name, got, err)
		}
	}
	// An unreadable Git directory is an error, and not taken for no.
	for what, text := range map[string]string{"no place": "x", "nowhere": "gitdir: nowhere"} {
		if err := os.WriteFile(filepath.Join(dir, ".git"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if got, err := Tracked(filepath.Join(dir, "a", ".helmsrc")); got || (err == nil) != (what == "nowhere") {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
}

// An index that is too large to be decoded counts as tracking the names that it mentions.
func TestTrackedInLargeIndex(t *testing.T) {
	for name, tt := range map[string]struct {
		version   byte
		mentioned string
		want      bool
	}{
		"mentioned where two reads meet": {2, "a/.helmsrc/v1", true},
		"in other letters":               {3, "a/.HelmSrc/v1", true},
		"not mentioned":                  {2, "a/.helmsrc2", false},
		"names without what they share":  {4, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, d := range []string{".git", "a/.helmsrc"} {
				if err := os.MkdirAll(filepath.Join(dir, d), 0o777); err != nil {
					t.Fatal(err)
				}
			}
			f, err := os.Create(filepath.Join(dir, ".git", "index"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteString("DIRC\x00\x00\x00" + string(tt.version)); err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte(tt.mentioned), 1<<20-6); err != nil {
				t.Fatal(err)
			}
			if err := f.Truncate(maxIndexBytes + 1); err != nil {
				t.Fatal(err)
			}
			if got, err := Tracked(filepath.Join(dir, "a", ".helmsrc")); got != tt.want || err != nil {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
