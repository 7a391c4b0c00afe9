package generate

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// maxFiles bounds the files of one tree.
const maxFiles = 100_000

// Content is what is in a file. It is read only where that decides anything.
type Content interface {
	// Bytes reads it. The caller does not change them.
	Bytes() ([]byte, error)
}

// File is a regular file of a source or of an artifact.
type File struct {
	Content    Content
	Executable bool
	// Copied is the index of the copy operation that put it into an artifact.
	Copied int
}

// text is the content of a file that an operation made.
type text []byte

func (t text) Bytes() ([]byte, error) { return t, nil }

// Tree holds the files of a source or of an artifact by their slash-separated paths. Directories are there as far as files
// are in them.
type Tree struct {
	files map[string]File
	dirs  map[string]int // how many files are below each
	names []string       // sorted; nil if it is to be made
}

// NewTree returns an empty tree.
func NewTree() *Tree { return &Tree{files: map[string]File{}, dirs: map[string]int{}} }

// Add puts a file into the tree, in place of one that is there. A file where a directory has to be is an error, and so are
// more files than a tree may hold.
func (t *Tree) Add(name string, f File) error {
	if _, there := t.files[name]; !there {
		if len(t.files) >= maxFiles {
			return fmt.Errorf("more than %d files", maxFiles)
		}
		if t.dirs[name] > 0 {
			return fmt.Errorf("open %s: is a directory", name)
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, file := t.files[dir]; file {
				return fmt.Errorf("mkdir %s: not a directory", dir)
			}
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			t.dirs[dir]++
		}
		t.names = nil
	}
	t.files[name] = f
	return nil
}

func (t *Tree) remove(name string) {
	delete(t.files, name)
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		t.dirs[dir]--
	}
	t.names = nil
}

// File finds a file.
func (t *Tree) File(name string) (File, bool) {
	f, ok := t.files[name]
	return f, ok
}

// IsDir reports whether a path is a directory. The root is one.
func (t *Tree) IsDir(name string) bool { return name == "." || t.dirs[name] > 0 }

// Names lists the paths of the files, sorted. The list is shared.
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

// Dirs lists the paths of the directories, sorted, without the root.
func (t *Tree) Dirs() []string {
	var list []string
	for dir, n := range t.dirs {
		if n > 0 {
			list = append(list, dir)
		}
	}
	slices.Sort(list)
	return list
}

// below lists the paths of the files in a directory and further down.
func (t *Tree) below(dir string) []string {
	names := t.Names()
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

// clone is a tree of its own with the same files.
func (t *Tree) clone() *Tree {
	c := NewTree()
	for name, f := range t.files {
		c.files[name] = f
	}
	for dir, n := range t.dirs {
		c.dirs[dir] = n
	}
	return c
}
