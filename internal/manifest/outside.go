package manifest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/file"
)

// bounds keeps what no one named inside the repositories and directories that were.
type bounds struct {
	roots map[string]string // of the repositories, by the directories that their files were met in
	named []string          // real paths of the directories that were named
	links []Link            // that are not followed, as they were met
	met   map[string]bool   // those
}

// A Link was met and is not followed.
type Link struct {
	Name string
	Out  bool // of the repository; else it leads to what is not read in its place

	real string // what it leads to, of a link to a directory
}

// Text says what is wrong with it.
func (l Link) Text() string {
	if l.Out {
		return "the link leads out of the repository and is not followed"
	}
	return "the link is not followed: Flux leaves links out of what it applies"
}

func (b *bounds) name(dir string) {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		b.named = append(b.named, absolutePath(real))
	}
}

// out reports whether what was met below a directory lies outside of its repository, and remembers it. What the user named
// may lie anywhere.
func (b *bounds) out(dir, name string) bool {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return false // a dangling link
	}
	real = absolutePath(real)
	if file.Below(real, b.root(dir)) || slices.ContainsFunc(b.named, func(named string) bool { return file.Below(real, named) }) {
		return false
	}
	b.meet(Link{Name: name, Out: true})
	return true
}

func (b *bounds) meet(link Link) {
	if b.met[link.Name] {
		return
	}
	if b.met == nil {
		b.met = map[string]bool{}
	}
	b.met[link.Name] = true
	b.links = append(b.links, link)
}

// linked remembers a link to a directory that was met on a walk, which does not go on there.
func (l *loader) linked(dir, name string, e fs.DirEntry) {
	if info, err := os.Stat(name); err != nil || !info.IsDir() || strings.HasPrefix(e.Name(), ".") || l.in.bounds.out(dir, name) {
		return
	}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		l.in.bounds.meet(Link{Name: name, real: absolutePath(real)})
	}
}

// outside reports whether a file that was met in a directory is a link that leads out of the repository, to a file that was
// not named.
func (l *loader) outside(dir, name string, e fs.DirEntry) bool {
	if !isLink(e) {
		return false
	}
	info, err := os.Stat(name)
	return err == nil && !l.seen.has(info) && l.in.bounds.out(dir, name)
}

func isLink(e fs.DirEntry) bool { return e.Type()&fs.ModeSymlink != 0 }

// root is the nearest parent of a directory that Git knows, else the directory.
func (b *bounds) root(dir string) string {
	if root, ok := b.roots[dir]; ok {
		return root
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		real = dir
	}
	root := absolutePath(real)
	if repository, ok := file.Repository(root); ok {
		root = repository
	}
	if b.roots == nil {
		b.roots = map[string]string{}
	}
	b.roots[dir] = root
	return root
}

func absolutePath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// Links are the links that were not followed, as they were met: out of their repository, or to directories that are not
// read by their own name either.
func (in *Input) Links() []Link {
	return slices.DeleteFunc(slices.Clone(in.bounds.links), func(l Link) bool {
		return l.real != "" && slices.ContainsFunc(in.bounds.named, func(named string) bool { return file.Below(l.real, named) })
	})
}

// literalDir is the directory of a glob that stands before its first wildcard.
func literalDir(pattern string) string {
	for i := strings.IndexAny(pattern, "*?["); i >= 0; i = strings.IndexAny(pattern, "*?[") {
		pattern = filepath.Dir(pattern[:i] + "x")
	}
	return pattern
}
