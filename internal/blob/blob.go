// Package blob keeps the bytes that a run downloads: archives, layers, provenance files. It owns their temporary files,
// computes digests while they are written, and has what several objects ask for downloaded once. It knows no protocol;
// who asks brings the function that downloads.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
)

// A Key names bytes before they are downloaded. Two requests with equal keys share one download.
type Key struct {
	// Location is where the bytes come from, without user and password, and what they are called there if no digest says
	// so.
	Location string
	// Identity is who asks. Bytes that one identity was given are not handed to another one, whatever digest it names.
	// It may be made with a secret of this process, so that a Key that has one is valid only as long as the process,
	// and what is written down is named by Digest or not at all.
	Identity string
	// Digest is that of the bytes, empty if nothing binding says it. What is downloaded is compared with it.
	Digest digest.Digest
}

// Lasting returns a name for the bytes that is the same in every process, and whether there is one: they have a digest,
// or they are public.
func (k Key) Lasting() (name string, ok bool) {
	switch {
	case k.Digest != "":
		return k.Digest.String(), true
	case k.Identity == "":
		return k.Location, true
	}
	return "", false
}

// Get downloads bytes into dst, at most limit. It is called again for another attempt of its own accord only through
// dst.Reset.
type Get func(ctx context.Context, dst fetch.Sink, limit int64) error

// DefaultKept is how many bytes of blobs that are not in use a Pool keeps for later callers.
const DefaultKept = 1 << 30

// A Pool holds the blobs of one run. NewPool makes it, and Close ends it with all that it holds. It is safe for use by
// many goroutines.
type Pool struct {
	kept int64

	mu      sync.Mutex
	entries map[Key]*entry
	idle    []*entry // without users, the one that was used longest ago first
	bytes   int64    // of idle
	files   map[*File]bool
}

// entry is one download. All but done is written by the caller that downloads, before done is closed, or under the lock
// of the pool.
type entry struct {
	key      Key
	done     chan struct{}
	file     *File
	warnings []error
	err      error
	users    int
	dropped  bool // no longer found by its key
}

// NewPool returns an empty pool. It keeps at most that many bytes of blobs without users; 0 is DefaultKept.
func NewPool(kept int64) *Pool {
	if kept <= 0 {
		kept = DefaultKept
	}
	return &Pool{kept: kept, entries: map[Key]*entry{}, files: map[*File]bool{}}
}

// Get returns the bytes with this key, and has them downloaded if no caller in this run has done so. A failure counts
// for everyone who asks later, unless it was that the caller's context ended. What the download warns of, also before it
// fails, is passed to each caller's context. A failure to write is a *WriteError; one of the comparison with the key's digest is a
// *digest.MismatchError.
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

// errGivenUp marks the failure of a caller whose context has ended: it says nothing about the bytes.
var errGivenUp = errors.New("given up")

func unwrapGivenUp(err error) error {
	var g *givenUp
	if errors.As(err, &g) {
		return g.err
	}
	return err
}

type givenUp struct{ err error }

func (g *givenUp) Error() string { return g.err.Error() }

func (g *givenUp) Unwrap() []error { return []error{g.err, errGivenUp} }

// enter makes the caller a user of the entry of a key. The first one has to download.
func (p *Pool) enter(key Key) (e *entry, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, found := p.entries[key]
	if !found {
		e = &entry{key: key, done: make(chan struct{})}
		p.entries[key] = e
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
	file, err := Create()
	if err == nil {
		p.mu.Lock()
		p.files[file] = true
		p.mu.Unlock()
		sink := &fetch.WatchedSink{Sink: file}
		listening := fetch.WithWarnings(ctx, func(warning error) { e.warnings = append(e.warnings, warning) })
		err = get(listening, sink, limit)
		switch want := e.key.Digest; {
		case sink.Err != nil:
			err = &WriteError{sink.Err}
		case err == nil && want != "":
			err = file.compare(want)
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
		p.drop(e)
	}
	if file != nil {
		p.discard(file)
		e.file = nil
	}
}

// leave ends the use of an entry, and discards the longest unused ones if there are too many.
func (p *Pool) leave(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.users--; e.users > 0 || e.file == nil {
		return
	}
	if e.dropped {
		p.discard(e.file)
		return
	}
	p.idle = append(p.idle, e)
	for p.bytes += e.file.Size(); p.bytes > p.kept && len(p.idle) > 0; {
		oldest := p.idle[0]
		p.wake(oldest)
		p.drop(oldest)
		p.discard(oldest.file)
	}
}

// wake takes an entry out of the idle ones.
func (p *Pool) wake(e *entry) {
	for i, other := range p.idle {
		if other == e {
			p.idle = append(p.idle[:i], p.idle[i+1:]...)
			p.bytes -= e.file.Size()
			return
		}
	}
}

func (p *Pool) drop(e *entry) {
	e.dropped = true
	delete(p.entries, e.key)
}

func (p *Pool) discard(f *File) {
	if p.files[f] {
		delete(p.files, f)
		_ = f.Close() // nothing of it is needed now
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

// A Blob is bytes that were downloaded. It can be read by many goroutines until it is released, or the pool is closed.
type Blob struct {
	*File

	leave func()
}

// Release says that the caller reads no more. It may be called more than once.
func (b *Blob) Release() { b.leave() }

// CopyTo writes the bytes. A failure to write is a *WriteError.
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
		return fmt.Errorf("cannot read what was downloaded: %w", err)
	}
	return nil
}

// WriteError is a failure of this machine to take bytes, and not of a server.
type WriteError struct{ Err error }

func (e *WriteError) Error() string { return e.Err.Error() }

func (e *WriteError) Unwrap() error { return e.Err }
