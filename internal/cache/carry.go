package cache

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/helmsrc/helmsrc/internal/digest"
)

// forCarried is the scope in a cache that is carried. What was private is so no longer for who has that.
func (s Scope) forCarried() Scope {
	return Scope{Source: s.carried, Shown: s.Shown, Item: s.Item}
}

// carry keeps bytes that were served, which the caller has compared or will compare with the digest.
func (c *Cache) carry(s Scope, d digest.Digest, f *os.File, size int64) {
	if c.options.Into != nil {
		c.options.Into.Keep(s.forCarried(), d, size, io.NewSectionReader(f, 0, size))
	}
}

// Answers calls a function with the name and the text of each answer, sorted by name.
func (c *Cache) Answers(each func(name string, text json.RawMessage) error) error {
	return c.each(answersDir, func(e Entry) error {
		a, _, err := c.readAnswer(e.file)
		if err != nil {
			return err
		}
		text, err := json.Marshal(a)
		if err != nil {
			return err
		}
		return each(path.Base(e.file), text)
	})
}

// Blobs calls a function with all bytes, sorted by digest.
func (c *Cache) Blobs(each func(d digest.Digest, size int64, content io.Reader) error) error {
	return c.each(blobsDir, func(e Entry) error {
		f, err := c.openFile(e.file)
		if err != nil {
			return err
		}
		return errors.Join(each(digestOf(e.file), e.Size, f), f.Close())
	})
}

func (c *Cache) each(dir string, do func(Entry) error) error {
	entries, err := c.files(dir, ours)
	for _, e := range entries {
		if err == nil {
			err = do(e)
		}
	}
	return err
}

// PutAnswer stores what Answers gave.
func (c *Cache) PutAnswer(name string, text json.RawMessage) error {
	file := path.Join(answersDir, name[:min(2, len(name))], name)
	a := &Answer{}
	if strings.Trim(name, "0123456789abcdef") != "" || !ours(file) || json.Unmarshal(text, a) != nil {
		return fmt.Errorf("%.80q is not the name of an answer, or its text is not one", name)
	}
	return c.writeAnswer(file, a)
}

// PutBlob stores what Blobs gave, compared with the digest.
func (c *Cache) PutBlob(d digest.Digest, from io.Reader) error {
	return c.write(blobPath(d), digest.NewReader(from, d))
}
