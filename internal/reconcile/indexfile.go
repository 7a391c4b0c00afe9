package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	godigest "github.com/opencontainers/go-digest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch/helmrepo"
	"github.com/helmsrc/helmsrc/internal/index"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
)

// indexFile is an index on disk with what the one pass over it found. It stays
// open for the rest of the run: every chart of the repository reads its part.
type indexFile struct {
	owner    store.Key // whose artifact it is
	offsets  *index.Offsets
	revision godigest.Digest
	artifact *meta.Artifact // nil for a spooled one
	tag      helmrepo.Tag
	file     io.ReaderAt
	size     int64
}

func (f *indexFile) open() *index.Index { return index.Open(f.file, f.offsets) }

func (f *indexFile) writeTo(w io.Writer) error {
	_, err := io.Copy(w, sectionOf(f.file, f.size))
	return err
}

func sectionOf(r io.ReaderAt, size int64) *io.SectionReader { return io.NewSectionReader(r, 0, size) }

// openIndex opens the stored bytes.
func (p *pass) openIndex(f *indexFile) error {
	file, err := p.r.store.OpenArtifact(f.artifact.Path)
	if err != nil {
		return status.ReadOperationFailed.Wrap(fmt.Errorf("failed to open source artifact: %w", err))
	}
	p.r.closers.add(file)
	info, err := file.Stat()
	if err != nil {
		return status.ReadOperationFailed.Wrap(fmt.Errorf("failed to open source artifact: %w", err))
	}
	f.file, f.size = file, info.Size()
	return nil
}

// A readAhead reads the stored index while it is compared with its digest: the server
// will most likely say that it has no other one.
type readAhead struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when it is over; the rest is valid from then on
	file   *indexFile
	err    error
}

func (r *Reconciler) readAhead(ctx context.Context, owner store.Key, artifact *meta.Artifact) *readAhead {
	a := &readAhead{done: make(chan struct{}), err: errors.New("the index cannot be read")}
	ctx, a.cancel = context.WithCancel(ctx)
	go func() {
		defer close(a.done)
		defer func() { _ = recover() }() // the error stays
		a.file, a.err = r.storedIndexFile(ctx, owner, artifact)
	}()
	return a
}

// stop ends it if it is still at it.
func (a *readAhead) stop() {
	if a != nil {
		a.cancel()
		<-a.done
	}
}

// endingReader ends with its context.
type endingReader struct {
	ctx context.Context
	io.Reader
}

func (r endingReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}

// storedIndexFile reads an index that an earlier run stored.
func (r *Reconciler) storedIndexFile(ctx context.Context, owner store.Key, artifact *meta.Artifact) (*indexFile, error) {
	file, err := r.store.OpenArtifact(artifact.Path)
	if err != nil {
		return nil, err
	}
	r.closers.add(file)
	offsets, err := index.Scan(endingReader{ctx, file})
	if err == nil {
		err = offsets.Check(file)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to load index: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return &indexFile{owner: owner, offsets: offsets, artifact: artifact, file: file, size: info.Size()}, nil
}

// spool is a temporary file outside the artifacts directory, for commands that
// write nothing there.
type spool struct {
	*os.File
	digest *digest.Writer
	linked bool // has a name in the file system
}

// newSpool returns a spool that stays until it is discarded.
func newSpool() (*spool, error) {
	file, err := os.CreateTemp("", "helmsrc-*")
	if err != nil {
		return nil, err
	}
	s := &spool{File: file, digest: digest.NewWriter(godigest.Canonical)}
	// Unlinked at once where the system allows it, so that not even a killed run
	// leaves it behind.
	s.linked = os.Remove(file.Name()) != nil
	return s, nil
}

// newSpool returns a spool that stays until the run ends.
func (r *Reconciler) newSpool() (*spool, error) {
	s, err := newSpool()
	if err == nil {
		r.closers.addFunc(s.discard)
	}
	return s, err
}

func (s *spool) discard() error {
	err := s.Close()
	if s.linked {
		err = errors.Join(err, os.Remove(s.Name()))
	}
	return err
}

func (s *spool) Write(b []byte) (int, error) {
	n, err := s.File.Write(b)
	_, _ = s.digest.Write(b[:n]) // a hash takes everything
	return n, err
}

// Reset forgets what was written.
func (s *spool) Reset() error {
	s.digest.Reset()
	if err := s.Truncate(0); err != nil {
		return err
	}
	_, err := s.Seek(0, io.SeekStart)
	return err
}

func (p *pass) spoolIndex(ctx context.Context, repo *repository) (*indexFile, error) {
	spool, err := p.r.newSpool()
	if err != nil {
		return nil, status.DirectoryCreationFailed.Wrap(err)
	}
	offsets, tag, err := p.r.downloadIndex(ctx, repo, spool, p.knownTag(repo))
	if errors.Is(err, helmrepo.ErrNotModified) {
		return p.unmodifiedIndex()
	}
	if err != nil {
		return nil, err
	}
	return &indexFile{owner: p.key, offsets: offsets, tag: tag, revision: spool.digest.Digest(), file: spool, size: spool.digest.Size()}, nil
}

// closers is what the run has to close at its end, last opened first.
type closers struct {
	mu   sync.Mutex
	list []func() error
}

func (c *closers) add(closer io.Closer) { c.addFunc(closer.Close) }

func (c *closers) addFunc(f func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, f)
}

func (c *closers) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var failed error
	for i := len(c.list) - 1; i >= 0; i-- {
		failed = errors.Join(failed, c.list[i]())
	}
	c.list = nil
	return failed
}

func timeOf(t time.Time) metav1.Time { return metav1.NewTime(t.UTC().Truncate(time.Second)) }
