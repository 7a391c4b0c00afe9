// Package cache keeps on disk what runs download, for later runs: bytes by their digest, and answers of sources by a keyed
// hash of what was asked. It knows no protocol, and decides only by names and digests who is served.
//
// The layout, below the directory "content" of the cache directory:
//
//	format                              the number of this layout, and the key of all hashes
//	blobs/<algorithm>/<aa>/<hex>        bytes, in the file that their digest names
//	answers/<aa>/<hex>                  answers, in the file that the keyed hash of their question names
//
// What is being written has a temporary name in the directory of its place. Nothing is locked. A file appears whole, by a
// rename, or not at all; whatever is read is compared with the hash that it
// has to have, and what differs counts as missing. So a process that is killed, a full disk and another process that
// removes what is too much cost a download, and nothing else.
package cache

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
)

const (
	contentDir = "content"
	formatFile = "format"
	blobsDir   = "blobs"
	answersDir = "answers"
	tempPrefix = ".tmp-"

	// format changes when older programs would misread what is in the cache.
	format = 1

	fileMode fs.FileMode = 0o600
	dirMode  fs.FileMode = 0o700

	// maxFormatFile bounds what is read of a file that may be anything.
	maxFormatFile = 1 << 10
)

// DefaultMaxSize is the size of a cache in bytes.
const DefaultMaxSize = 2 << 30

// Options are the settings of one cache.
type Options struct {
	// MaxSize is the most bytes of files that it may have when the run ends; 0 is DefaultMaxSize.
	MaxSize int64
	// Refresh serves nothing, and keeps all the same what is fetched.
	Refresh bool
	// Into is a carried cache that gets whatever is served; may be nil.
	Into *Cache
	// Carried makes a cache that goes from one machine to another: a source is known by its place alone, and a caller that has the
	// cache may have all of it.
	Carried bool
	// Now is required: what was used longest ago is removed first.
	Now func() time.Time
	// Warn is called, from any goroutine, with what the user should know: an entry that is damaged, a disk that takes
	// nothing. Nil is not called.
	Warn func(error)
}

// A Cache is one cache directory. Open makes it, and Close ends it. It is safe for use by many goroutines, and by many
// processes at once. A nil Cache is always empty.
type Cache struct {
	dir     string
	options Options
	root    *os.Root // of the content
	key     []byte

	fresh    sync.Map    // the answers of this run that are for whom the source names bytes to
	wrote    atomic.Bool // there may be too much now
	readOnly sync.Once
	closed   atomic.Bool
}

// Path is the directory in the cache directory that this package writes to.
func Path(dir string) string { return filepath.Join(dir, contentDir) }

// Open opens the cache in a directory, which is created if it is not there. An error is a reason to go on without.
func Open(dir string, o Options) (*Cache, error) {
	if o.MaxSize <= 0 {
		o.MaxSize = DefaultMaxSize
	}
	c := &Cache{dir: Path(dir), options: o}
	if err := c.begin(); err != nil {
		unusable := &finding.Problem{Err: err, Advice: finding.OtherCache}
		if errors.Is(err, errUnknown) {
			unusable.Advice = "if it is the cache of helmsrc, remove " + Path(dir) + ": what it holds is downloaded again"
		}
		unusable.Text = fmt.Sprintf("the cache in %s cannot be used: %v", dir, file.Cause(err))
		return nil, unusable
	}
	return c, nil
}

var (
	errForeign = errors.New("it belongs to another user")
	errNewer   = errors.New("it was made by a newer version of helmsrc")
	errUnknown = errors.New("its file content/" + formatFile + " is not one of helmsrc")
	errNoDir   = errors.New("something that is no directory is in its place")
)

func (c *Cache) begin() (err error) {
	err = os.MkdirAll(c.dir, dirMode)
	// A directory that exists is enough, whatever a file system that is read only says.
	fi, failed := os.Lstat(c.dir)
	switch {
	case failed != nil:
		return errors.Join(err, failed)
	case !fi.IsDir():
		return errNoDir
	case !file.Owned(fi):
		return errForeign
	}
	root, err := file.OpenRoot(c.dir)
	if err != nil {
		return err
	}
	c.root = root
	if o := c.options; o.Carried {
		key := sha256.Sum256([]byte("helmsrc carries"))
		c.key = key[:]
	} else if err := c.readKey(); err != nil {
		return errors.Join(err, root.Close())
	}
	return nil
}

// readKey reads the key, or makes one. Of two processes that make one at a time both use the same.
func (c *Cache) readKey() error {
	err := c.readFormat()
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	temp, err := c.writeTemp(answersDir, strings.NewReader(fmt.Sprintf("helmsrc cache %d\n%s\n", format, hex.EncodeToString(key))))
	if err != nil {
		return err
	}
	defer func() { _ = c.root.Remove(temp) }()
	// Unlike a rename, a link does not replace what another process has put there.
	err = c.root.Link(temp, formatFile)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = c.root.Rename(temp, formatFile) // a file system without links
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return c.readFormat()
}

func (c *Cache) readFormat() error {
	f, err := c.openFile(formatFile)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxFormatFile))
	if err != nil {
		return err
	}
	var version int
	var key string
	if n, _ := fmt.Sscanf(string(text), "helmsrc cache %d\n", &version); n != 1 {
		return errUnknown
	}
	if version > format {
		return errNewer
	}
	_, key, _ = strings.Cut(strings.TrimSpace(string(text)), "\n")
	c.key, err = hex.DecodeString(strings.TrimSpace(key))
	if err != nil || len(c.key) != sha256.Size || version != format {
		return errUnknown
	}
	return nil
}

// Close ends the use of the cache, and removes what was used longest ago if it is too large.
func (c *Cache) Close() error {
	if c == nil || !c.closed.CompareAndSwap(false, true) {
		return nil
	}
	var err error
	if c.wrote.Load() {
		_, err = c.trim(c.options.MaxSize)
	}
	return errors.Join(err, c.root.Close())
}

func (c *Cache) warn(err error) {
	if c.options.Warn != nil {
		c.options.Warn(err)
	}
}

// cannotWrite reports once that nothing is kept. The run does not depend on it.
func (c *Cache) cannotWrite(err error) {
	c.readOnly.Do(func() {
		c.warn(fmt.Errorf("nothing is kept in the cache in %s: %w", filepath.Dir(c.dir), file.Cause(err)))
	})
}

// mac is a hash that only this cache makes.
func (c *Cache) mac() hash.Hash { return hmac.New(sha256.New, c.key) }

// hashOf names parts, of which no two lists give the same name.
func (c *Cache) hashOf(parts ...string) string {
	mac := c.mac()
	for _, part := range parts {
		_, _ = fmt.Fprintf(mac, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// errStrange is a file that this program has not written.
var errStrange = errors.New("it is no file of this user")

// openFile opens a file of this user, and nothing else: not what a link leads to, and no pipe that blocks.
func (c *Cache) openFile(name string) (*os.File, error) {
	fi, err := c.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() || !file.Owned(fi) {
		return nil, errStrange
	}
	return c.root.Open(name)
}

// writeTemp writes a temporary file in a directory, which is made if it is not there, and returns its name.
func (c *Cache) writeTemp(dir string, from io.Reader) (name string, err error) {
	if err := c.root.MkdirAll(dir, dirMode); err != nil {
		return "", err
	}
	name = path.Join(dir, tempPrefix+rand.Text())
	f, err := c.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(f, from)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = c.root.Remove(name)
		return "", err
	}
	return name, nil
}

// write puts a file in its place: all of it, or nothing.
func (c *Cache) write(name string, from io.Reader) error {
	temp, err := c.writeTemp(path.Dir(name), from)
	if err != nil {
		return err
	}
	if err := c.root.Rename(temp, name); err != nil {
		_ = c.root.Remove(temp)
		return err
	}
	c.touch(name, time.Time{})
	c.wrote.Store(true)
	return nil
}

// usedAgain is how long a use is as good as the next: the time of a file is not written more often.
const usedAgain = time.Minute

// touch records that a file is in use.
func (c *Cache) touch(name string, last time.Time) {
	now := c.options.Now()
	if age := now.Sub(last); age < 0 || age >= usedAgain {
		_ = c.root.Chtimes(name, now, now) // a cache that is only read is a cache, too
	}
}
