package git

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// maxIndexBytes is well above the index of the largest repositories; one of a million files has about 100 MB.
const maxIndexBytes = 512 << 20

// Tracked reports whether the repository around a path, if there is one, has the path or a file below it in its index: a checkout
// has brought it then. Upper and lower case are the same, as on the file systems where they are. A path that is not there
// is not tracked. No index, and one that cannot be read and does not hold the path's name, is one that tracks nothing.
func Tracked(name string) bool {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return false
	}
	if real, err = filepath.Abs(real); err != nil {
		return false
	}
	for root := filepath.Dir(real); ; root = filepath.Dir(root) {
		dir, ok := gitDirOf(root)
		if ok {
			rel, err := filepath.Rel(root, real)
			return err == nil && indexHas(filepath.Join(dir, "index"), filepath.ToSlash(rel))
		}
		if root == filepath.Dir(root) {
			return false
		}
	}
}

// gitDirOf is where Git keeps what it knows of a working tree: that of a worktree or a submodule is elsewhere.
func gitDirOf(root string) (string, bool) {
	dir := filepath.Join(root, ".git")
	info, err := os.Stat(dir)
	if err != nil || info.IsDir() || info.Size() > 1<<16 {
		return dir, err == nil
	}
	text, err := os.ReadFile(dir)
	to, ok := strings.CutPrefix(string(text), "gitdir:")
	if err != nil || !ok {
		return "", false
	}
	if to = strings.TrimSpace(to); !filepath.IsAbs(to) {
		to = filepath.Join(root, to)
	}
	return to, true
}

func indexHas(file, name string) bool {
	info, err := os.Stat(file)
	if err != nil || info.Size() > maxIndexBytes {
		return false
	}
	data, err := os.ReadFile(file)
	if err != nil || len(data) < 8 {
		return false
	}
	// Version 4 leaves out what a name has in common with the one before.
	folded, base := lowerASCII(data), lowerASCII([]byte(path.Base(name)))
	mentioned := bytes.Contains(folded, append(base, '/')) || bytes.Contains(folded, append(base, 0))
	if data[7] < 4 && !mentioned {
		return false
	}
	var decoded index.Index
	if err := index.NewDecoder(bytes.NewReader(data)).Decode(&decoded); err != nil {
		return mentioned
	}
	for _, e := range decoded.Entries {
		if len(e.Name) >= len(name) && strings.EqualFold(e.Name[:len(name)], name) && (len(e.Name) == len(name) || e.Name[len(name)] == '/') {
			return true
		}
	}
	return false
}

// lowerASCII is a copy in lower case. [bytes.ToLower] takes long for what is mostly no text.
func lowerASCII(data []byte) []byte {
	folded := make([]byte, len(data))
	for i, c := range data {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		folded[i] = c
	}
	return folded
}
