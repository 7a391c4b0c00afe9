package git

import (
	"bufio"
	"bytes"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/helmsrc/helmsrc/internal/file"
)

// maxIndexBytes is the largest index that is decoded: the index of some 600,000 files.
const maxIndexBytes = 64 << 20

// Tracked reports whether the repository around a path, if any, has the path or a file below it in its index: a checkout created it
// then. Case is ignored, because some file systems ignore it. A path that does not exist is not tracked, nor is any path without an
// index, or with a file in its place that does not hold the path's name; an index of more than 64 MiB that may hold the name tracks
// it. The error is about an index that cannot be opened.
func Tracked(name string) (bool, error) {
	real, err := file.Real(name)
	if file.Missing(err) {
		return false, nil
	}
	root, ok := Top(filepath.Dir(real))
	if err != nil || !ok {
		return false, err
	}
	dir, err := gitDir(root)
	if err != nil {
		return false, err
	}
	rel, err := filepath.Rel(root, real)
	if err != nil {
		return false, err
	}
	return indexHas(filepath.Join(dir, "index"), filepath.ToSlash(rel))
}

func indexHas(at, name string) (bool, error) {
	f, err := file.OpenInside(at)
	if file.Missing(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	mentioned, version := mentions(f, path.Base(name))
	// Version 4 leaves out the beginning that a name shares with the one before.
	if version < 4 && !mentioned {
		return false, nil
	}
	if info.Size() > maxIndexBytes {
		return true, nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	var decoded index.Index
	if err := index.NewDecoder(bufio.NewReader(f)).Decode(&decoded); err != nil {
		return mentioned, nil
	}
	for _, e := range decoded.Entries {
		if len(e.Name) >= len(name) && strings.EqualFold(e.Name[:len(name)], name) && (len(e.Name) == len(name) || e.Name[len(name)] == '/') {
			return true, nil
		}
	}
	return false, nil
}

// mentions reports whether an index has an element of a path that is called base, and the version of the index.
func mentions(r io.Reader, base string) (found bool, version byte) {
	directory, whole := []byte(strings.ToLower(base)+"/"), []byte(strings.ToLower(base)+"\x00")
	buf := make([]byte, 1<<20)
	kept := 0
	for first := true; ; first = false {
		n, err := io.ReadFull(r, buf[kept:])
		if first && n >= 8 {
			version = buf[7]
		}
		part := buf[:kept+n]
		lowerASCII(part[kept:])
		found = found || bytes.Contains(part, directory) || bytes.Contains(part, whole)
		if err != nil {
			return found, version
		}
		kept = copy(buf, part[len(part)-len(base):])
	}
}

// lowerASCII converts ASCII capitals to lower case. [bytes.ToLower] is slow for data that is mostly binary.
func lowerASCII(data []byte) {
	for i, c := range data {
		if 'A' <= c && c <= 'Z' {
			data[i] = c + 'a' - 'A'
		}
	}
}
