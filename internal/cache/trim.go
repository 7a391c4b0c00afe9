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
)

// abandonedAfter is the age from which a temporary file is one that a killed process left behind. No download takes as
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
	answers, err := c.files(answersDir)
	if err != nil {
		return nil, err
	}
	for i := range answers {
		if a, _, err := c.readAnswer(answers[i].file); err == nil {
			answers[i].Answer = *a
		}
	}
	blobs, err := c.files(blobsDir)
	if err != nil {
		return nil, err
	}
	for i := range blobs {
		blobs[i].Kind, blobs[i].Digest = KindBytes, digestOf(blobs[i].file)
	}
	return append(answers, blobs...), nil
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

// files lists the files below a directory that this program may have written.
func (c *Cache) files(dir string) ([]Entry, error) {
	var list []Entry
	if fi, err := c.root.Lstat(dir); err == nil && !fi.IsDir() {
		return nil, nil // something else is in its place, which is none of ours
	}
	err := fs.WalkDir(c.root.FS(), dir, func(file string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist), err != nil && d != nil && d.IsDir() && file != dir:
			return nil // another process has removed it, or it is none of ours
		case err != nil:
			return err
		case d.IsDir() || !d.Type().IsRegular() || !ours(file):
			return nil
		}
		fi, err := d.Info()
		if err != nil || !owned(fi) {
			return nil //nolint:nilerr // it is gone
		}
		list = append(list, Entry{Size: fi.Size(), Used: fi.ModTime(), file: file})
		return nil
	})
	return list, err
}

func ours(file string) bool {
	if strings.HasPrefix(file, blobsDir+"/") {
		return digestOf(file) != ""
	}
	name := path.Base(file)
	return len(name) == hexLength && file == path.Join(answersDir, name[:2], name) || path.Dir(file) == tempDir
}

const hexLength = 64

// trim removes what was used longest ago until no more than limit bytes are left, and what killed processes left behind.
func (c *Cache) trim(limit int64) (Removed, error) {
	var removed Removed
	c.removeAbandoned(&removed)
	answers, err := c.files(answersDir)
	if err != nil {
		return removed, err
	}
	blobs, err := c.files(blobsDir)
	if err != nil {
		return removed, err
	}
	all := append(answers, blobs...)
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

func (c *Cache) removeAbandoned(removed *Removed) {
	left, err := c.files(tempDir)
	if err != nil {
		return
	}
	for _, e := range left {
		if c.options.Now().Sub(e.Used) > abandonedAfter {
			_ = c.remove(e, removed)
		}
	}
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
