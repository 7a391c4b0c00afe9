// Package blob holds the bytes that a run downloads: archives, layers, provenance files. It owns their temporary files,
// computes digests during the download, and downloads bytes once that several objects request. It knows no protocol:
// the caller provides the function that downloads.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
)

// A Key identifies bytes before they are downloaded. Two requests with equal keys share one download.
type Key struct {
	// Location is the URL or other location, without user and password. It includes a name for the bytes if they have no
	// digest.
	Location string
	// Identity identifies the login. Bytes are returned only to the identity that downloaded them, regardless of the
	// digest. It may be derived from a secret of this process, so a Key with an identity is valid only within the process.
	Identity string
	// Digest is the expected digest, "" if there is no binding one. Downloaded bytes are compared with it.
	Digest digest.Digest
	// Scope is the scope for a cache that outlives the process: it determines which bytes may be kept, and for whom. It
	// does not make two keys differ.
	Scope cache.Scope
}

// shared returns the part of a key that is equal for requests that share a download.
func (k Key) shared() Key {
	k.Scope = cache.Scope{}
	return k
}

// Get downloads at most limit bytes into dst. To retry by itself, it must first call dst.Reset.
type Get func(ctx context.Context, dst fetch.Sink, limit int64) error

// DefaultKept is how many bytes of unused blobs a Pool keeps for later callers.
const DefaultKept = 1 << 30

// A Pool holds the blobs of one run. NewPool creates it, and Close removes it with all its blobs. It may be used by
// several goroutines at once.
type Pool struct {
	kept   int64
	cache  *cache.Cache
	create func() (*File, error)

	mu      sync.Mutex
	entries map[Key]*entry
	idle    []*entry // without users, least recently used first
	bytes   int64    // of idle
	files   map[*File]bool
}

// entry is one download. The caller that downloads writes its fields before done is closed, except users, which
// the lock of the pool protects.
type entry struct {
	key      Key
	done     chan struct{}
	file     *File
	warnings []error
	err      error
	users    int
}

// NewPool returns an empty pool. It keeps at most kept bytes of blobs without users; 0 is DefaultKept. Bytes with a
// digest are first looked up in the cache, and kept there; the cache may be nil. create creates the files of the pool.
func NewPool(kept int64, c *cache.Cache, create func() (*File, error)) *Pool {
	if kept <= 0 {
		kept = DefaultKept
	}
	return &Pool{kept: kept, cache: c, create: create, entries: map[Key]*entry{}, files: map[*File]bool{}}
}

// Get returns the bytes with this key, and downloads them on the first call in the run. A failure is returned to all later callers
// too, unless the context of the downloading caller had ended. The warnings of the download, even of a failed one, are passed to
// each caller's context. A failure to write is a *WriteError; a mismatch with the key's digest is a *digest.MismatchError.
func (p *Pool) Get(ctx context.Context, key Key, limit int64, get Get) (*Blob, error) {
	for {
		e, first := p.enter(key)
		if first {
			p.download(ctx, e, limit, get)
		} else {
			select {
			case <-e.done:
			case <-ctx.Done():
				p.leave(e)
				return nil, context.Cause(ctx)
			}
		}
		if !errors.Is(e.err, errGivenUp) {
			for _, warning := range e.warnings {
				fetch.Warn(ctx, warning)
			}
		}
		if e.err == nil {
			return &Blob{File: e.file, leave: sync.OnceFunc(func() { p.leave(e) })}, nil
		}
		p.leave(e)
		if first || !errors.Is(e.err, errGivenUp) {
			return nil, unwrapGivenUp(e.err)
		}
	}
}

// errGivenUp marks the failure of a caller whose context has ended: the bytes may still be available.
var errGivenUp = errors.New("given up")

func unwrapGivenUp(err error) error {
	if g, ok := errors.AsType[*givenUp](err); ok {
		return g.err
	}
	return err
}

type givenUp struct{ err error }

func (g *givenUp) Error() string { return g.err.Error() }

func (g *givenUp) Unwrap() []error { return []error{g.err, errGivenUp} }

// enter adds the caller to the users of the entry for a key. The first user must download.
func (p *Pool) enter(key Key) (e *entry, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, found := p.entries[key.shared()]
	if !found {
		e = &entry{key: key, done: make(chan struct{})}
		p.entries[key.shared()] = e
	}
	if e.users == 0 && found {
		p.wake(e)
	}
	e.users++
	return e, !found
}

func (p *Pool) download(ctx context.Context, e *entry, limit int64, get Get) {
	defer close(e.done)
	e.err = errors.New("internal error, please report it: a download did not return") // if get panics
	file, err := p.create()
	if err == nil {
		p.mu.Lock()
		p.files[file] = true
		p.mu.Unlock()
		if !p.cached(e.key, file, limit) {
			err = p.fill(ctx, e, file, limit, get)
		}
	} else {
		err = &WriteError{err}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e.file, e.err = file, err
	if err == nil {
		return
	}
	if ctx.Err() != nil {
		e.err = &givenUp{err}
		delete(p.entries, e.key.shared())
	}
	if file != nil {
		p.discard(file)
		e.file = nil
	}
}

// fill downloads into a file, and caches the bytes.
func (p *Pool) fill(ctx context.Context, e *entry, file *File, limit int64, get Get) error {
	sink := &fetch.WatchedSink{Sink: file}
	listening := fetch.With(ctx, func(warning error) { e.warnings = append(e.warnings, warning) })
	err := get(listening, sink, limit)
	switch want := e.key.Digest; {
	case sink.Err != nil:
		return &WriteError{sink.Err}
	case err == nil && want != "":
		err = file.compare(want)
	}
	if err == nil && e.key.Digest != "" && len(e.warnings) == 0 { // a warning must be repeated in every run
		p.cache.Keep(e.key.Scope, e.key.Digest, file.Size(), file.Section())
	}
	return err
}

// cached fills a file from the cache, or leaves it empty.
func (p *Pool) cached(key Key, file *File, limit int64) bool {
	if key.Digest == "" {
		return false
	}
	if p.cache.Load(key.Scope, key.Digest, limit, file) {
		return true
	}
	_ = file.Reset() // the download reports the error again
	return false
}

// leave ends the use of an entry, and discards the least recently used entries if the unused ones are too large.
func (p *Pool) leave(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.users--; e.users > 0 || e.file == nil {
		return
	}
	p.idle = append(p.idle, e)
	for p.bytes += e.file.Size(); p.bytes > p.kept && len(p.idle) > 0; {
		oldest := p.idle[0]
		p.wake(oldest)
		delete(p.entries, oldest.key.shared())
		p.discard(oldest.file)
	}
}

// wake removes an entry from the idle list.
func (p *Pool) wake(e *entry) {
	if i := slices.Index(p.idle, e); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		p.bytes -= e.file.Size()
	}
}

func (p *Pool) discard(f *File) {
	if p.files[f] {
		delete(p.files, f)
		_ = f.Close() // the file is not used any more
	}
}

// Close discards all blobs.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var failed error
	for f := range p.files {
		failed = errors.Join(failed, f.Close())
	}
	p.entries, p.idle, p.bytes, p.files = map[Key]*entry{}, nil, 0, map[*File]bool{}
	return failed
}

// A Blob holds downloaded bytes. Several goroutines may read it until it is released or the pool is closed.
type Blob struct {
	*File

	leave func()
}

// Release ends the use of the blob by its caller. It may be called more than once.
func (b *Blob) Release() { b.leave() }

// CopyTo writes the bytes to dst. A failure to write is a *WriteError.
func (b *Blob) CopyTo(dst fetch.Sink) error {
	if err := dst.Reset(); err != nil {
		return &WriteError{err}
	}
	sink := &fetch.WatchedSink{Sink: dst}
	_, err := io.Copy(sink, b.Section())
	if sink.Err != nil {
		return &WriteError{sink.Err}
	}
	if err != nil {
		return fmt.Errorf("cannot read the download: %w", err)
	}
	return nil
}

// WriteError is a failure to write on this machine, not a failure of a server.
type WriteError struct{ Err error }

func (e *WriteError) Error() string { return e.Err.Error() }

func (e *WriteError) Unwrap() error { return e.Err }
