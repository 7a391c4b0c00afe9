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

// KindBytes is the kind of the answers that record the source of bytes.
const KindBytes = "bytes"

func blobPath(d digest.Digest) string {
	return path.Join(blobsDir, d.Algorithm().String(), d.Encoded()[:2], d.Encoded())
}

func (c *Cache) shownDir() string { return filepath.Dir(c.dir) }

// open opens the bytes with a digest, if they exist and the scope allows it.
func (c *Cache) open(s Scope, d digest.Digest) (*os.File, fs.FileInfo, error) {
	if c == nil || c.options.Refresh || !valid(s, d) || !c.allowed(s, d) {
		return nil, nil, fs.ErrNotExist
	}
	f, err := c.openFile(blobPath(d))
	if err != nil {
		return nil, nil, err
	}
	fi, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, fi, nil
}

// Load writes the bytes with a digest to dst, at most limit, if they exist and the scope allows it. If it returns false,
// it may have written a part of them. It removes damaged bytes, with a warning.
func (c *Cache) Load(s Scope, d digest.Digest, limit int64, dst io.Writer) bool {
	f, fi, err := c.open(s, d)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		c.damaged(blobPath(d), "the copy of "+d.String(), err)
		return false
	}
	defer func() { _ = f.Close() }()
	if fi.Size() > limit {
		return false // the download reports it
	}
	from := digest.NewReader(f, d)
	if _, err = io.Copy(dst, from); err != nil {
		if _, err := io.Copy(io.Discard, from); err != nil { // dst did not fail
			c.Discard(d)
		}
		return false
	}
	c.touch(blobPath(d), fi.ModTime())
	c.carry(s, d, f, fi.Size())
	return true
}

// View opens the bytes with a digest, if they exist and the scope allows it. It is for a caller that reads parts of them:
// View does not verify them, the caller must, and calls [Cache.Discard] for damaged bytes.
func (c *Cache) View(s Scope, d digest.Digest) (f *os.File, size int64, ok bool) {
	f, fi, err := c.open(s, d)
	if err != nil {
		return nil, 0, false // Load reports the reason
	}
	c.touch(blobPath(d), fi.ModTime())
	c.carry(s, d, f, fi.Size())
	return f, fi.Size(), true
}

// Discard removes bytes that a caller of [Cache.View] found to be damaged, with a warning.
func (c *Cache) Discard(d digest.Digest) {
	if c != nil && valid(Scope{Source: "any"}, d) {
		c.damaged(blobPath(d), "the copy of "+d.String(), errSeal)
	}
}

// valid reports whether an entry has a source and a well-formed digest, which can name a file.
func valid(s Scope, d digest.Digest) bool {
	_, err := digest.Parse(d.String())
	return s.Source != "" && err == nil
}

// Holds reports whether the cache has the bytes for this scope, without reading them.
func (c *Cache) Holds(s Scope, d digest.Digest) bool {
	f, _, err := c.open(s, d)
	if err == nil {
		_ = f.Close() // nothing was written through it
	}
	return err == nil
}

// Keep stores bytes that came from the source of the scope, and that the caller has compared with the digest. Bytes
// larger than the size limit of the cache are not stored.
func (c *Cache) Keep(s Scope, d digest.Digest, size int64, from io.Reader) {
	if c == nil || !valid(s, d) || size > c.options.MaxSize {
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

// keep writes the bytes unless a file with their name and size exists: its content is verified when it is read.
func (c *Cache) keep(d digest.Digest, size int64, from io.Reader) error {
	name := blobPath(d)
	dir, base, err := c.in(name, true)
	if err != nil {
		return err
	}
	fi, err := dir.Lstat(base)
	if err == nil && (!fi.Mode().IsRegular() || !file.Owned(fi)) {
		return fmt.Errorf("%s: %w", name, errStrange)
	}
	if err == nil && fi.Size() == size {
		c.touch(name, fi.ModTime())
		return nil
	}
	return c.write(name, from)
}
