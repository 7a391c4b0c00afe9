package cache

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/file"
)

// abandonedAfter is the age from which a temporary file was left behind by a killed process. No download takes as
// long.
const abandonedAfter = 24 * time.Hour

// An Entry is one file of the cache.
type Entry struct {
	Answer // what is known of it; of bytes Digest alone

	Size int64
	Used time.Time

	file string
}

// Removed says what went.
type Removed struct {
	Files int
	Bytes int64
}

// Entries lists what is in the cache, answers first, each part by the name of its file. What this program has not written
// is left out; an answer that cannot be read has no Kind.
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

// all lists the files of the cache that this program may have written, answers first.
func (c *Cache) all(ours func(file string) bool) ([]Entry, error) {
	answers, err := c.files(answersDir, ours)
	if err != nil {
		return nil, err
	}
	blobs, err := c.files(blobsDir, ours)
	return append(answers, blobs...), err
}

// IsAnswer reports whether the entry is an answer, and not the bytes that one is about.
func (e *Entry) IsAnswer() bool { return strings.HasPrefix(e.file, answersDir+"/") }

// digestOf is the digest that the path of a file names, "" for none.
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

// files lists the files below a directory of the layout that this program may have written, by their names. It passes over what
// other processes remove, and the directories of other users.
func (c *Cache) files(dir string, ours func(file string) bool) (list []Entry, err error) {
	if fi, err := c.root.Lstat(dir); err != nil || !fi.IsDir() {
		return nil, nil //nolint:nilerr // something else may be in its place, which is not ours
	}
	err = fs.WalkDir(c.root.FS(), dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case name == dir:
			return err
		case err != nil:
			return nil //nolint:nilerr // see above
		case e.IsDir() && strings.Count(name, "/") > maxDepth:
			return fs.SkipDir
		case !e.Type().IsRegular() || !ours(name):
			return nil
		}
		if fi, err := e.Info(); err == nil && file.Owned(fi) {
			list = append(list, Entry{Size: fi.Size(), Used: fi.ModTime(), file: name})
		}
		return nil
	})
	return list, err
}

// maxDepth is how deep directories are in the layout.
const maxDepth = 2

func ours(file string) bool {
	if strings.HasPrefix(file, blobsDir+"/") {
		return digestOf(file) != ""
	}
	name := path.Base(file)
	return len(name) == hexLength && file == path.Join(answersDir, name[:2], name)
}

// isTemp reports whether a file was never finished, if it stands where it was written to.
func isTemp(file string) bool { return strings.HasPrefix(path.Base(file), tempPrefix) }

const hexLength = 64

// trim removes what was used longest ago until no more than limit bytes are left, and what killed processes left behind.
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
		return nil // another process was faster
	}
	if err == nil {
		removed.Files++
		removed.Bytes += e.Size
	}
	return err
}

// Prune removes what was used longest ago until the cache has its size, whatever entries remove says true of, and bytes
// that no answer is about any longer.
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

// Verify reads everything and removes what is damaged. It returns how many entries it has read, and those that it has
// removed.
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
