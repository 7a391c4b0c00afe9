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

// Contents calls a function with the name and the text of each answer, sorted by name, then with all bytes, sorted by digest. These
// have no name.
func (c *Cache) Contents(each func(answer string, d digest.Digest, content *io.SectionReader) error) error {
	entries, err := c.all(ours)
	for _, e := range entries {
		var f *os.File
		if err == nil {
			f, err = c.openFile(e.file)
		}
		if err != nil {
			return err
		}
		name, seal := "", int64(0)
		if e.IsAnswer() {
			name, seal = path.Base(e.file), hexLength+1
		}
		err = errors.Join(each(name, digestOf(e.file), io.NewSectionReader(f, seal, e.Size-seal)), f.Close())
	}
	return err
}

// PutAnswer stores an answer that Contents gave.
func (c *Cache) PutAnswer(name string, text json.RawMessage) error {
	file := path.Join(answersDir, name[:min(2, len(name))], name)
	a := &Answer{}
	if strings.Trim(name, "0123456789abcdef") != "" || !ours(file) || json.Unmarshal(text, a) != nil {
		return fmt.Errorf("%.80q is not the name of an answer, or its text is not one", name)
	}
	return c.writeAnswer(file, a)
}

// PutBlob stores bytes that Contents gave, compared with the digest.
func (c *Cache) PutBlob(d digest.Digest, from io.Reader) error {
	return c.write(blobPath(d), digest.NewReader(from, d))
}
