package generate

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// maxFiles is the limit of the files of one tree.
const maxFiles = 100_000

// Content is the content of a file. It is read only if it is needed.
type Content interface {
	// Bytes returns the content. The caller must not change it.
	Bytes() ([]byte, error)
}

// File is a regular file of a source or of an artifact.
type File struct {
	Content    Content
	Executable bool
	// Copied is the index of the copy operation that added the file to an artifact.
	Copied int
}

// text is the content of a file that an operation made.
type text []byte

func (t text) Bytes() ([]byte, error) { return t, nil }

// Tree holds the files of a source or of an artifact by their slash-separated paths, and the directories, which archives
// have entries for, even for empty ones.
type Tree struct {
	files map[string]File
	dirs  map[string]bool
	names []string // sorted; nil if files were added or removed since
}

// NewTree returns an empty tree.
func NewTree() *Tree { return &Tree{files: map[string]File{}, dirs: map[string]bool{}} }

// Add adds a file to the tree, or replaces it. It returns an error if the path or a parent is of the wrong type, or if the
// tree has too many files.
func (t *Tree) Add(name string, f File) error {
	if _, there := t.files[name]; !there {
		if len(t.files) >= maxFiles {
			return fmt.Errorf("more than %d files", maxFiles)
		}
		if t.IsDir(name) {
			return fmt.Errorf("open %s: is a directory", name)
		}
		if err := t.AddDir(path.Dir(name)); err != nil {
			return err
		}
		t.names = nil
	}
	t.files[name] = f
	return nil
}

// AddDir adds a directory to the tree, with its parents. It returns an error if one of them is a file, or if the tree has too
// many directories.
func (t *Tree) AddDir(name string) error {
	for dir := name; dir != "." && !t.dirs[dir]; dir = path.Dir(dir) {
		if _, file := t.files[dir]; file {
			return fmt.Errorf("mkdir %s: not a directory", dir)
		}
	}
	for dir := name; dir != "." && !t.dirs[dir]; dir = path.Dir(dir) {
		if len(t.dirs) >= maxFiles {
			return fmt.Errorf("more than %d directories", maxFiles)
		}
		t.dirs[dir] = true
	}
	return nil
}

func (t *Tree) remove(name string) {
	delete(t.files, name)
	t.names = nil
}

// File returns the file at a path.
func (t *Tree) File(name string) (File, bool) {
	f, ok := t.files[name]
	return f, ok
}

// IsDir reports whether a path is a directory. The root always is.
func (t *Tree) IsDir(name string) bool { return name == "." || t.dirs[name] }

// Names returns the paths of the files, sorted. The caller must not change the list.
func (t *Tree) Names() []string {
	if t.names == nil {
		t.names = make([]string, 0, len(t.files))
		for name := range t.files {
			t.names = append(t.names, name)
		}
		slices.Sort(t.names)
	}
	return t.names
}

// Dirs returns the paths of the directories, sorted, without the root.
func (t *Tree) Dirs() []string { return slices.Sorted(maps.Keys(t.dirs)) }

// below returns the paths of the files below a directory.
func (t *Tree) below(dir string) []string {
	return within(t.Names(), dir)
}

// within returns the paths of a sorted list that are below a directory.
func within(names []string, dir string) []string {
	if dir == "." {
		return names
	}
	prefix := dir + "/"
	from, _ := slices.BinarySearch(names, prefix)
	to := from
	for to < len(names) && strings.HasPrefix(names[to], prefix) {
		to++
	}
	return names[from:to]
}

func (t *Tree) clone() *Tree { return &Tree{files: maps.Clone(t.files), dirs: maps.Clone(t.dirs)} }
