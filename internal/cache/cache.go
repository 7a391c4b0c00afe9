// Package cache stores downloads on disk for later runs: bytes by their digest, and answers of sources by a keyed hash of
// the request. It knows no protocol, and controls access only by names and digests.
//
// The layout, below the directory "content" of the cache directory:
//
//	format                              the number of this layout, and the key of all hashes
//	blobs/<algorithm>/<aa>/<hex>        bytes, in the file that their digest names
//	answers/<aa>/<hex>                  answers, in the file that the keyed hash of their request names
//
// A file is written under a temporary name in its directory, and renamed when it is complete. There are no locks. Every
// file is compared with its hash when it is read, and a file that differs counts as missing. So a killed process, a full
// disk, and another process that removes files cost only a download.
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

	// format is increased when older programs would misread the content of the cache.
	format = 1

	fileMode fs.FileMode = 0o600
	dirMode  fs.FileMode = 0o700

	// maxFormatFile is how many bytes are read of the format file, which may have any content.
	maxFormatFile = 1 << 10
)

// DefaultMaxSize is the default limit for the size of a cache, in bytes.
const DefaultMaxSize = 2 << 30

// Options holds the settings of one cache.
type Options struct {
	// MaxSize is the limit, in bytes, of the files at the end of the run; 0 is DefaultMaxSize.
	MaxSize int64
	// Refresh ignores all entries, but stores new ones.
	Refresh bool
	// Into is a carried cache that receives all served entries; it may be nil.
	Into *Cache
	// Carried is true for a cache that is copied to other machines: it identifies a source by its location alone, and serves
	// everything to its owner.
	Carried bool
	// Now returns the time. It is required: the least recently used files are removed first.
	Now func() time.Time
	// Warn is called, by any goroutine, with warnings for the user: a damaged entry, a disk that cannot be written.
	// It may be nil.
	Warn func(error)
}

// A Cache is one cache directory. Open opens it, and Close closes it. It may be used by several goroutines and several
// processes at once. A nil Cache is always empty.
type Cache struct {
	dir     string
	options Options
	root    *os.Root // of the content
	key     []byte

	mu   sync.Mutex
	dirs map[string]*os.Root // the open directories, by their paths

	fresh    sync.Map    // answers that this run stored for identities to which the source names the bytes
	wrote    atomic.Bool // the cache may exceed its limit
	readOnly sync.Once
	closed   atomic.Bool
}

// Path returns the directory in the cache directory that this package writes to.
func Path(dir string) string { return filepath.Join(dir, contentDir) }

// Open opens the cache in a directory, which it creates if necessary. After an error the caller can continue without a cache.
func Open(dir string, o Options) (*Cache, error) {
	if o.MaxSize <= 0 {
		o.MaxSize = DefaultMaxSize
	}
	c := &Cache{dir: Path(dir), options: o}
	if err := c.begin(); err != nil {
		unusable := &finding.Problem{Err: err, Advice: finding.OtherCache}
		if errors.Is(err, errUnknown) {
			unusable.Advice = "if it is the cache of helmsrc, remove " + Path(dir) + ": its content is downloaded again"
		}
		unusable.Text = fmt.Sprintf("the cache in %s cannot be used: %v", dir, file.Cause(err))
		return nil, unusable
	}
	return c, nil
}

var (
	errForeign = errors.New("it belongs to another user")
	errNewer   = errors.New("it was made by a newer version of helmsrc")
	errUnknown = errors.New("its file content/" + formatFile + " is not a file of helmsrc")
	errNoDir   = errors.New("it is not a directory")
)

func (c *Cache) begin() (err error) {
	err = os.MkdirAll(c.dir, dirMode)
	// An existing directory is enough, even if MkdirAll fails on a read-only file system.
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
	c.root, c.dirs = root, map[string]*os.Root{".": root}
	if o := c.options; o.Carried {
		key := sha256.Sum256([]byte("helmsrc carries"))
		c.key = key[:]
	} else if err := c.readKey(); err != nil {
		return errors.Join(err, c.Close())
	}
	return nil
}

// readKey reads the key, or creates one. If two processes create a key at the same time, both use the same one.
func (c *Cache) readKey() error {
	err := c.readFormat()
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	temp, _, err := c.writeTemp(path.Join(answersDir, formatFile), strings.NewReader(fmt.Sprintf("helmsrc cache %d\n%s\n", format, hex.EncodeToString(key))))
	if err != nil {
		return err
	}
	temp = path.Join(answersDir, temp)
	defer func() { _ = c.root.Remove(temp) }()
	// Unlike a rename, a link does not replace the file of another process.
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

// Close closes the cache, and removes the least recently used files if it is too large.
func (c *Cache) Close() error {
	if c == nil || !c.closed.CompareAndSwap(false, true) {
		return nil
	}
	var err error
	if c.wrote.Load() {
		_, err = c.trim(c.options.MaxSize)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, dir := range c.dirs {
		_ = dir.Close() // nothing was written through it
	}
	return err
}

func (c *Cache) warn(err error) {
	if c.options.Warn != nil {
		c.options.Warn(err)
	}
}

// cannotWrite reports once that the cache cannot be written. The run does not depend on it.
func (c *Cache) cannotWrite(err error) {
	c.readOnly.Do(func() {
		c.warn(fmt.Errorf("cannot write to the cache in %s: %w", filepath.Dir(c.dir), file.Cause(err)))
	})
}

// mac returns a hash with the key of this cache.
func (c *Cache) mac() hash.Hash { return hmac.New(sha256.New, c.key) }

// hashOf returns a hash of parts. Two different lists have different hashes.
func (c *Cache) hashOf(parts ...string) string {
	mac := c.mac()
	for _, part := range parts {
		_, _ = fmt.Fprintf(mac, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// errStrange reports a file that this program has not written.
var errStrange = errors.New("it is not a file of this user")

// in returns the directory of a file, and the base name of the file. Directories stay open: an operation in one of them is then one
// system call, without a walk from the top. With create, it creates missing directories.
func (c *Cache) in(name string, create bool) (dir *os.Root, base string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	dir, err = c.opened(path.Dir(name), create)
	return dir, path.Base(name), err
}

// opened opens a directory step by step; c.mu must be held.
func (c *Cache) opened(name string, create bool) (*os.Root, error) {
	if dir := c.dirs[name]; dir != nil {
		return dir, nil
	}
	parent, err := c.opened(path.Dir(name), create)
	if err != nil {
		return nil, err
	}
	if create {
		if err := parent.Mkdir(path.Base(name), dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	dir, err := parent.OpenRoot(path.Base(name))
	if err == nil {
		c.dirs[name] = dir
	}
	return dir, err
}

// openFile opens a regular file of this user. It does not follow links, and does not open pipes, which could block.
func (c *Cache) openFile(name string) (*os.File, error) {
	dir, base, err := c.in(name, false)
	if err != nil {
		return nil, err
	}
	fi, err := dir.Lstat(base)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() || !file.Owned(fi) {
		return nil, errStrange
	}
	return dir.Open(base)
}

// writeTemp writes a temporary file in the directory of another file, and returns its base name and the directory.
func (c *Cache) writeTemp(beside string, from io.Reader) (temp string, dir *os.Root, err error) {
	dir, _, err = c.in(beside, true)
	if err != nil {
		return "", nil, err
	}
	temp = tempPrefix + rand.Text()
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return "", nil, err
	}
	_, err = io.Copy(f, from)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = dir.Remove(temp)
		return "", nil, err
	}
	return temp, dir, nil
}

// write writes a file atomically.
func (c *Cache) write(name string, from io.Reader) error {
	temp, dir, err := c.writeTemp(name, from)
	if err != nil {
		return err
	}
	if err := dir.Rename(temp, path.Base(name)); err != nil {
		_ = dir.Remove(temp)
		return err
	}
	c.touch(name, time.Time{})
	c.wrote.Store(true)
	return nil
}

// usedAgain is the interval in which the time of a file is updated at most once.
const usedAgain = time.Minute

// touch records that a file is in use.
func (c *Cache) touch(name string, last time.Time) {
	now := c.options.Now()
	if age := now.Sub(last); age < 0 || age >= usedAgain {
		if dir, base, err := c.in(name, false); err == nil {
			_ = dir.Chtimes(base, now, now) // the cache may be read-only
		}
	}
}
