package manifest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxParents bounds how far up a repository is looked for.
const maxParents = 100

// bounds keeps what no one named inside the repositories and directories that were.
type bounds struct {
	roots map[string]string // of the repositories, by the directories that their files were met in
	named []string          // real paths of the directories that were named
	links []string          // that lead out of them, as they were met
	met   map[string]bool   // those
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
		return false // it leads nowhere
	}
	real = absolutePath(real)
	if below(real, b.root(dir)) || slices.ContainsFunc(b.named, func(named string) bool { return below(real, named) }) {
		return false
	}
	if !b.met[name] {
		if b.met == nil {
			b.met = map[string]bool{}
		}
		b.met[name] = true
		b.links = append(b.links, name)
	}
	return true
}

// outside reports whether a file that was met in a directory is a link that leads out of the repository, to a file that was
// not named.
func (l *loader) outside(dir, name string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return false
	}
	info, err := os.Stat(name)
	return err == nil && !l.seen.has(info) && l.in.bounds.out(dir, name)
}

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
	at := root
	for range maxParents {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			root = at
			break
		}
		parent := filepath.Dir(at)
		if parent == at {
			break
		}
		at = parent
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

func below(path, root string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, string(filepath.Separator))+string(filepath.Separator))
}

// OutsideLinks are the links that were not followed because they lead out of their repository, as they were met.
func (in *Input) OutsideLinks() []string { return in.bounds.links }

// literalDir is the directory of a glob that stands before its first wildcard.
func literalDir(pattern string) string {
	for i := strings.IndexAny(pattern, "*?["); i >= 0; i = strings.IndexAny(pattern, "*?[") {
		pattern = filepath.Dir(pattern[:i] + "x")
	}
	return pattern
}
