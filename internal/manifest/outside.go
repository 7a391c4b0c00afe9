package manifest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/file"
)

// bounds keeps files that the user did not name inside the repositories and directories that the user named.
type bounds struct {
	roots map[string]string // the roots of the repositories, by the directories in which their files were found
	named []string          // real paths of the directories that were named
	links []Link            // the links that are not followed, in the order of the walk
	met   map[string]bool   // the names in links
}

// A Link is a symbolic link that is not followed.
type Link struct {
	Name string
	Out  bool // the link leads out of the repository; else it leads to a directory

	real string // the target of a link to a directory
}

// Text returns the message of the finding.
func (l Link) Text() string {
	if l.Out {
		return "the link leads out of the repository and is not followed"
	}
	return "the link is not followed: Flux leaves links out of what it applies"
}

func (b *bounds) name(dir string) {
	if real, err := file.Real(dir); err == nil {
		b.named = append(b.named, real)
	}
}

// out reports whether a file found below dir is outside of its repository, and records its link if so. Directories
// that the user named may be anywhere.
func (b *bounds) out(dir, name string) bool {
	real, err := file.Real(name)
	if err != nil {
		return false // a dangling link
	}
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

// linked records a link to a directory, which the walk does not follow.
func (l *loader) linked(dir, name string, e fs.DirEntry) {
	if info, err := os.Stat(name); err != nil || !info.IsDir() || strings.HasPrefix(e.Name(), ".") || l.in.bounds.out(dir, name) {
		return
	}
	if real, err := file.Real(name); err == nil {
		l.in.bounds.meet(Link{Name: name, real: real})
	}
}

// outside reports whether a file found in a directory is a link that leads out of the repository, to a file that was
// not named.
func (l *loader) outside(dir, name string, e fs.DirEntry) bool {
	if !isLink(e) {
		return false
	}
	info, err := os.Stat(name)
	return err == nil && !l.seen.has(info) && l.in.bounds.out(dir, name)
}

func isLink(e fs.DirEntry) bool { return e.Type()&fs.ModeSymlink != 0 }

// root returns the root of the Git repository of a directory, or the directory itself.
func (b *bounds) root(dir string) string {
	if root, ok := b.roots[dir]; ok {
		return root
	}
	root := file.Root(dir)
	if b.roots == nil {
		b.roots = map[string]string{}
	}
	b.roots[dir] = root
	return root
}

// Links returns the links that were not followed, in the order of the walk: links out of their repository, and links
// to directories that were not read by their own name either.
func (in *Input) Links() []Link {
	return slices.DeleteFunc(slices.Clone(in.bounds.links), func(l Link) bool {
		return l.real != "" && slices.ContainsFunc(in.bounds.named, func(named string) bool { return file.Below(l.real, named) })
	})
}

// literalDir returns the directory of a glob before its first wildcard.
func literalDir(pattern string) string {
	for i := strings.IndexAny(pattern, "*?["); i >= 0; i = strings.IndexAny(pattern, "*?[") {
		pattern = filepath.Dir(pattern[:i] + "x")
	}
	return pattern
}
