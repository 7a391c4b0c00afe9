package cache

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/file"
)

// KindBytes is the kind of the answers that say which bytes came from which source.
const KindBytes = "bytes"

func blobPath(d digest.Digest) string {
	return path.Join(blobsDir, d.Algorithm().String(), d.Encoded()[:2], d.Encoded())
}

func (c *Cache) shownDir() string { return filepath.Dir(c.dir) }

// Load writes the bytes with a digest to dst, at most limit, if they are there and this scope may have them. If it returns
// false, something may have been written all the same. What is damaged is removed, with a warning.
func (c *Cache) Load(s Scope, d digest.Digest, limit int64, dst io.Writer) bool {
	if c == nil || c.options.Refresh || c.check(s, d) != nil || !c.allowed(s, d) {
		return false
	}
	file := blobPath(d)
	f, err := c.openFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		c.damaged(file, "the copy of "+d.String(), err)
		return false
	}
	defer func() { _ = f.Close() }()
	fi, err := f.Stat()
	if err != nil || fi.Size() > limit {
		return false // the download reports it
	}
	out := &watched{to: dst}
	_, err = io.Copy(out, digest.NewReader(f, d))
	switch {
	case out.err != nil:
		return false
	case err != nil:
		c.damaged(file, "the copy of "+d.String(), errSeal)
		return false
	}
	c.touch(file, fi.ModTime())
	c.carry(s, d, f, fi.Size())
	return true
}

// View opens the bytes with a digest, if they are there and this scope may have them, for a caller that needs parts of them,
// and compares those itself: nothing here looks into them. What turns out to be damaged is for [Cache.Discard].
func (c *Cache) View(s Scope, d digest.Digest) (f *os.File, size int64, ok bool) {
	if c == nil || c.options.Refresh || c.check(s, d) != nil || !c.allowed(s, d) {
		return nil, 0, false
	}
	f, err := c.openFile(blobPath(d))
	if err != nil {
		return nil, 0, false // Load says why
	}
	fi, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, 0, false
	}
	c.touch(blobPath(d), fi.ModTime())
	c.carry(s, d, f, fi.Size())
	return f, fi.Size(), true
}

// Discard removes bytes that a caller of [Cache.View] has found to be damaged, with a warning.
func (c *Cache) Discard(d digest.Digest) {
	if c != nil && c.check(Scope{Source: "any"}, d) == nil {
		c.damaged(blobPath(d), "the copy of "+d.String(), errSeal)
	}
}

// watched keeps the errors of a writer apart.
type watched struct {
	to  io.Writer
	err error
}

func (w *watched) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	if err != nil {
		w.err = err
	}
	return n, err
}

var errNoSource = errors.New("no source is named")

// check refuses an entry without a source, and one that cannot name a file.
func (c *Cache) check(s Scope, d digest.Digest) error {
	if s.Source == "" {
		return errNoSource
	}
	_, err := digest.Parse(d.String())
	return err
}

// Holds reports whether the bytes are there for this scope, without reading them.
func (c *Cache) Holds(s Scope, d digest.Digest) bool {
	if c == nil || c.options.Refresh || c.check(s, d) != nil || !c.allowed(s, d) {
		return false
	}
	_, err := c.lstat(blobPath(d))
	return err == nil
}

// Keep stores bytes that came from the source in the scope, and that the caller has compared with the digest. What is
// larger than the whole cache may be is left out.
func (c *Cache) Keep(s Scope, d digest.Digest, size int64, from io.Reader) {
	if c == nil || c.check(s, d) != nil || size > c.options.MaxSize {
		return
	}
	if err := c.keep(d, size, from); err != nil {
		c.cannotWrite(err)
		return
	}
	a := &Answer{Kind: KindBytes, Source: s.Shown, Name: s.Item, Private: s.Private, Digest: d}
	c.keepAnswer(c.answerPath(s, KindBytes, d.String(), true), a)
	if s.Named {
		named := c.answerPath(s, KindBytes, d.String(), false)
		c.fresh.Store(named, true)
		c.keepAnswer(named, a)
	}
}

// keep writes the bytes unless a file of their name and size is there: what is in it is checked when it is read.
func (c *Cache) keep(d digest.Digest, size int64, from io.Reader) error {
	name := blobPath(d)
	fi, err := c.lstat(name)
	if err == nil && (!fi.Mode().IsRegular() || !file.Owned(fi)) {
		return fmt.Errorf("%s: %w", name, errStrange)
	}
	if err == nil && fi.Size() == size {
		c.touch(name, fi.ModTime())
		return nil
	}
	return c.write(name, from)
}
