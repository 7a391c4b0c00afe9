package file

import (
	"os"
	"path/filepath"
	"strings"
)

// maxParents is the largest number of directories in which a repository is searched, upwards.
const maxParents = 100

// Repository returns the nearest Git work tree at or above a directory. The name must be absolute and without links.
func Repository(dir string) (root string, ok bool) {
	for range maxParents {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		dir = parent
	}
	return "", false
}

// Real returns the absolute name of an existing file or directory, without links.
func Real(name string) (string, error) {
	path, err := filepath.EvalSymlinks(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	return path, err
}

// Root returns the root of the Git work tree around a directory, or the directory itself, absolute and without links.
func Root(dir string) string {
	path, err := Real(dir)
	if err != nil {
		return dir
	}
	if root, ok := Repository(path); ok {
		return root
	}
	return path
}

// Outside reports whether a name passes through a link that is in a repository and leads out of it: the author of the
// repository has chosen its target. A link to the repository itself, or to a directory above it, is outside of it. A name
// without a file does not lead out.
func Outside(name string) bool {
	at, err := os.Getwd()
	if err == nil {
		at, err = filepath.EvalSymlinks(at)
	}
	rest := name
	if filepath.IsAbs(name) {
		at, err = filepath.VolumeName(name)+string(filepath.Separator), nil
		rest = name[len(filepath.VolumeName(name)):]
	}
	if err != nil {
		return false
	}
	for part := range strings.FieldsFuncSeq(rest, func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) }) {
		next := filepath.Join(at, part) // also right for .., because the path before it has no links
		info, err := os.Lstat(next)
		if err != nil {
			return false
		}
		if info.Mode()&os.ModeSymlink != 0 {
			if next, err = filepath.EvalSymlinks(next); err != nil {
				return false
			}
			if root, ok := Repository(at); ok && !Below(next, root) {
				return true
			}
		}
		at = next
	}
	return false
}

// Below reports whether a path is a directory, or is in it. Both are absolute and without links.
func Below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}
