package render

import (
	"cmp"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// view is the tree of an artifact that is not on disk: its files are files of other directories, as in a directory of links. A nil
// view is the disk itself.
type view struct {
	root  string // an invented path, which does not exist on disk
	files map[string]viewFile
	dirs  map[string][]string // the names in each directory, sorted
}

type viewFile struct {
	original string       // real path of the file; for a generated file, its path in the view
	made     []byte       // the text of a generated file, nil for other files
	pos      manifest.Pos // of the field that generates it
}

func newView(root string) *view {
	return &view{root: root, files: map[string]viewFile{}, dirs: map[string][]string{root: nil}}
}

// add puts a file into the view, at a slash-separated path below its root.
func (v *view) add(name string, f viewFile) {
	at := filepath.Join(v.root, filepath.FromSlash(name))
	f.original = cmp.Or(f.original, at)
	v.files[at] = f
	for at != v.root {
		dir := filepath.Dir(at)
		i, there := slices.BinarySearch(v.dirs[dir], filepath.Base(at))
		if there {
			return
		}
		v.dirs[dir] = slices.Insert(v.dirs[dir], i, filepath.Base(at))
		at = dir
	}
}

func (v *view) in(path string) bool { return v != nil && inside(v.root, path) }

func (v *view) within(path string) (string, error) {
	path = filepath.Clean(path)
	if !v.in(path) {
		return "", &finding.Problem{Text: "leads out of the artifact", Advice: "only what the ArtifactGenerator copies exists in its artifact: copy this as well"}
	}
	if f, ok := v.files[path]; ok {
		return f.original, nil
	}
	if _, ok := v.dirs[path]; !ok {
		return "", syscall.ENOENT
	}
	return path, nil
}

// original returns the real path of a file in the view. It returns any other path unchanged.
func (v *view) original(path string) string {
	if v.in(path) {
		if f, ok := v.files[filepath.Clean(path)]; ok {
			return f.original
		}
	}
	return path
}

func (v *view) file(path string) (viewFile, bool) {
	if !v.in(path) {
		return viewFile{}, false
	}
	f, ok := v.files[path]
	return f, ok
}

func (v *view) isDir(path string) (bool, error) {
	if _, ok := v.dirs[path]; ok {
		return true, nil
	}
	if _, ok := v.files[path]; ok {
		return false, nil
	}
	return false, syscall.ENOENT
}

func (v *view) made(path string) ([]byte, error) {
	f, ok := v.files[path]
	switch _, dir := v.dirs[path]; {
	case dir:
		return nil, syscall.EISDIR
	case !ok:
		return nil, syscall.ENOENT
	}
	return f.made, nil
}

func (v *view) readDir(path string) ([]fs.DirEntry, error) {
	if !v.in(path) {
		return file.ReadDir(path)
	}
	names, ok := v.dirs[filepath.Clean(path)]
	if !ok {
		return nil, syscall.ENOENT
	}
	var entries []fs.DirEntry
	for _, name := range names {
		_, dir := v.dirs[filepath.Join(path, name)]
		entries = append(entries, viewEntry{name, dir})
	}
	return entries, nil
}

// shown returns the displayed path of a file in the view: that of the original file, or the path in the artifact.
func (v *view) shown(name string, display func(string) string) string {
	if !v.in(name) {
		return display(name)
	}
	if f, ok := v.files[name]; ok {
		if f.made != nil {
			return f.pos.File
		}
		return display(f.original)
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(name, v.root), string(filepath.Separator))
	return path.Join("ExternalArtifact", filepath.Base(filepath.Dir(v.root)), filepath.Base(v.root), filepath.ToSlash(rel))
}

type viewEntry struct {
	name string
	dir  bool
}

func (e viewEntry) Name() string               { return e.name }
func (e viewEntry) IsDir() bool                { return e.dir }
func (e viewEntry) Info() (fs.FileInfo, error) { return e, nil }
func (e viewEntry) Size() int64                { return 0 }
func (e viewEntry) ModTime() time.Time         { return time.Time{} }
func (e viewEntry) Sys() any                   { return nil }
func (e viewEntry) Mode() fs.FileMode          { return e.Type() }

func (e viewEntry) Type() fs.FileMode {
	if e.dir {
		return fs.ModeDir
	}
	return 0
}
