package cache

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/file"
)

// abandonedAfter is the age after which a temporary file belongs to a killed process. No download takes that
// long.
const abandonedAfter = 24 * time.Hour

// An Entry is one file of the cache.
type Entry struct {
	Answer // the answer; for bytes, only Kind and Digest are set

	Size int64
	Used time.Time

	file string
}

// Removed counts the removed files and bytes.
type Removed struct {
	Files int
	Bytes int64
}

// Entries returns the entries of the cache, answers first, each part sorted by file name. It leaves out files that this
// program has not written; an answer that cannot be read has no Kind.
func (c *Cache) Entries() ([]Entry, error) {
	entries, err := c.all(ours)
	for i := range entries {
		e := &entries[i]
		if !e.IsAnswer() {
			e.Kind, e.Digest = KindBytes, digestOf(e.file)
		} else if a, _, err := c.readAnswer(e.file); err == nil {
			e.Answer = *a
		}
	}
	return entries, err
}

// all returns the files of the cache that ours accepts, answers first.
func (c *Cache) all(ours func(file string) bool) ([]Entry, error) {
	answers, err := c.files(answersDir, ours)
	if err != nil {
		return nil, err
	}
	blobs, err := c.files(blobsDir, ours)
	return append(answers, blobs...), err
}

// IsAnswer reports whether the entry is an answer, not bytes.
func (e *Entry) IsAnswer() bool { return strings.HasPrefix(e.file, answersDir+"/") }

// digestOf returns the digest in the path of a file, or "".
func digestOf(file string) digest.Digest {
	parts := strings.Split(file, "/")
	if len(parts) != 4 {
		return ""
	}
	d, err := digest.Parse(parts[1] + ":" + parts[3])
	if err != nil || blobPath(d) != file {
		return ""
	}
	return d
}

// files returns the files below a directory of the layout that ours accepts, sorted by name. It skips files that other
// processes remove, files of other users, and directories that cannot be read.
func (c *Cache) files(dir string, ours func(file string) bool) ([]Entry, error) {
	if fi, err := c.root.Lstat(dir); err != nil || !fi.IsDir() {
		return nil, nil //nolint:nilerr // something else may be in its place, which is not ours
	}
	root, err := c.root.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return below(root, dir, ours)
}

// below returns the files below an open directory. Directories in it are closed again: there may be hundreds.
func below(root *os.Root, dir string, ours func(file string) bool) (list []Entry, err error) {
	found, err := fs.ReadDir(root.FS(), ".")
	for _, e := range found {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir() && strings.Count(name, "/") <= maxDepth:
			if sub, err := root.OpenRoot(e.Name()); err == nil {
				more, _ := below(sub, name, ours) // see files
				list = append(list, more...)
				_ = sub.Close()
			}
		case e.Type().IsRegular() && ours(name):
			if fi, err := e.Info(); err == nil && file.Owned(fi) {
				list = append(list, Entry{Size: fi.Size(), Used: fi.ModTime(), file: name})
			}
		}
	}
	return list, err
}

// maxDepth is the depth of directories in the layout.
const maxDepth = 2

func ours(file string) bool {
	if strings.HasPrefix(file, blobsDir+"/") {
		return digestOf(file) != ""
	}
	name := path.Base(file)
	return len(name) == hexLength && file == path.Join(answersDir, name[:2], name)
}

// isTemp reports whether a file is a temporary file, which was not completed.
func isTemp(file string) bool { return strings.HasPrefix(path.Base(file), tempPrefix) }

const hexLength = 64

// trim removes the least recently used files until at most limit bytes are left, and the files of killed processes.
func (c *Cache) trim(limit int64) (Removed, error) {
	var removed Removed
	written := func(file string) bool { return ours(file) || isTemp(file) }
	all, err := c.all(written)
	if err != nil {
		return removed, err
	}
	all = slices.DeleteFunc(all, func(e Entry) bool {
		if isTemp(e.file) && c.options.Now().Sub(e.Used) > abandonedAfter {
			_ = c.remove(e, &removed)
		}
		return isTemp(e.file)
	})
	total := int64(0)
	for _, e := range all {
		total += e.Size
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return cmp.Or(a.Used.Compare(b.Used), cmp.Compare(a.file, b.file)) })
	for _, e := range all {
		if total <= limit {
			break
		}
		total -= e.Size
		if err := c.remove(e, &removed); err != nil {
			return removed, err
		}
	}
	return removed, nil
}

func (c *Cache) remove(e Entry, removed *Removed) error {
	err := c.root.Remove(e.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another process has removed it
	}
	if err == nil {
		removed.Files++
		removed.Bytes += e.Size
	}
	return err
}

// Prune removes the answers for which remove returns true, unreadable answers, and bytes without an answer. Then it removes the
// least recently used entries until the cache is within its limit.
func (c *Cache) Prune(remove func(*Entry) bool) (Removed, error) {
	var removed Removed
	entries, err := c.Entries()
	if err != nil {
		return removed, err
	}
	used := map[digest.Digest]bool{}
	for _, e := range entries {
		if !e.IsAnswer() {
			continue
		}
		if e.Kind == "" || remove(&e) {
			if err := c.remove(e, &removed); err != nil {
				return removed, err
			}
			continue
		}
		used[e.Digest] = true
	}
	for _, e := range entries {
		if !e.IsAnswer() && !used[e.Digest] {
			if err := c.remove(e, &removed); err != nil {
				return removed, err
			}
		}
	}
	rest, err := c.trim(c.options.MaxSize)
	removed.Files += rest.Files
	removed.Bytes += rest.Bytes
	return removed, err
}

// Verify reads all entries and removes the damaged ones. It returns the number of entries that it read, and the
// removed entries.
func (c *Cache) Verify() (read int, damaged []Entry, err error) {
	entries, err := c.Entries()
	if err != nil {
		return 0, nil, err
	}
	for _, e := range entries {
		read++
		if e.IsAnswer() && e.Kind != "" || !e.IsAnswer() && c.intact(e) {
			continue
		}
		damaged = append(damaged, e)
		if err := c.root.Remove(e.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return read, damaged, err
		}
	}
	return read, damaged, nil
}

func (c *Cache) intact(e Entry) bool {
	f, err := c.openFile(e.file)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = f.Close() }()
	_, err = io.Copy(io.Discard, digest.NewReader(f, e.Digest))
	return err == nil
}
