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

// forCarried returns the scope in a carried cache, in which private entries are available to every owner of the cache, too.
func (s Scope) forCarried() Scope {
	return Scope{Source: s.carried, Shown: s.Shown, Item: s.Item}
}

// carry stores served bytes in the carried cache. The caller compares them with the digest, before or after the call.
func (c *Cache) carry(s Scope, d digest.Digest, f *os.File, size int64) {
	if c.options.Into != nil {
		c.options.Into.Keep(s.forCarried(), d, size, io.NewSectionReader(f, 0, size))
	}
}

// Contents calls a function with the name and the text of each answer, sorted by name, then with all bytes, sorted by digest,
// without a name.
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

// PutAnswer stores an answer from Contents.
func (c *Cache) PutAnswer(name string, text json.RawMessage) error {
	file := path.Join(answersDir, name[:min(2, len(name))], name)
	a := &Answer{}
	if strings.Trim(name, "0123456789abcdef") != "" || !ours(file) || json.Unmarshal(text, a) != nil {
		return fmt.Errorf("%.80q is not the name of an answer, or its text is not one", name)
	}
	return c.writeAnswer(file, a)
}

// PutBlob stores bytes from Contents, and compares them with the digest.
func (c *Cache) PutBlob(d digest.Digest, from io.Reader) error {
	return c.write(blobPath(d), digest.NewReader(from, d))
}
