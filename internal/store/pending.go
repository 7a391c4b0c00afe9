package store

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/helmsrc/helmsrc/internal/digest"
)

// An Artifact describes a file of the store.
type Artifact struct {
	Path           string // slash-separated, relative to the artifacts directory
	Digest         string
	Size           int64
	LastUpdateTime time.Time // when it was stored, in whole seconds
}

// A Pending is an artifact that is being written, in a temporary file beside its final path. It must end in Commit or
// Discard. It is not safe for concurrent use.
type Pending struct {
	store *Store
	view  *view
	key   Key
	temp  string
	file  *os.File // nil after Commit or Discard
	sum   *digest.Writer
	known digest.Digest // the digest of the file given to Take, and its size
	size  int64
	err   error // the first failed write; sticks until Reset
}

// Create begins an artifact of the object, whose lock must be held.
func (s *Store) Create(key Key) (*Pending, error) {
	key, v, err := s.locked(key)
	if err != nil {
		return nil, err
	}
	temp := path.Join(key.dir(), tempPrefix+rand.Text())
	f, err := createIn(v, temp)
	if _, ok := errors.AsType[*DirectoryError](err); ok {
		return nil, err
	}
	if err != nil {
		return nil, withPath(key.dir(), err)
	}
	return &Pending{store: s, view: v, key: key, temp: temp, file: f, sum: digest.NewWriter(s.options.Algorithm)}, nil
}

// createIn creates a file. It retries if a prune by another process has just removed an empty parent directory.
func createIn(v *view, name string) (f *os.File, err error) {
	for range maxLockRaces {
		if err = v.makeDir(path.Dir(name)); err == nil {
			f, err = v.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, artifactMode)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		v.forget()
	}
	return nil, err
}

// Write appends to the artifact.
func (p *Pending) Write(b []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	n, err := p.file.Write(b)
	_, _ = p.sum.Write(b[:n])
	p.err = withPath(p.key.dir(), err)
	return n, p.err
}

// Take copies a file with a known digest into the artifact. It computes the digest only if the store has another algorithm.
func (p *Pending) Take(from io.Reader, known digest.Digest) error {
	if known.Algorithm() != p.store.options.Algorithm {
		_, err := io.Copy(p, from)
		return err
	}
	n, err := io.Copy(p.file, from)
	p.err = withPath(p.key.dir(), err)
	p.known, p.size = known, n
	return p.err
}

// ReadAt reads the bytes that were written.
func (p *Pending) ReadAt(b []byte, off int64) (int, error) { return p.file.ReadAt(b, off) }

// Reset discards the bytes that were written, before a second attempt to fetch the artifact.
func (p *Pending) Reset() error {
	if p.Size() == 0 && p.err == nil {
		return nil
	}
	if err := p.file.Truncate(0); err != nil {
		return withPath(p.key.dir(), err)
	}
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return withPath(p.key.dir(), err)
	}
	p.sum.Reset()
	p.known, p.size, p.err = "", 0, nil
	return nil
}

// Digest returns the digest of the bytes that were written.
func (p *Pending) Digest() digest.Digest { return cmp.Or(p.known, p.sum.Digest()) }

// Size returns the number of bytes that were written.
func (p *Pending) Size() int64 { return p.size + p.sum.Size() }

// Discard removes the unfinished artifact. After Commit it does nothing, so that it can be deferred.
func (p *Pending) Discard() error {
	if p.file == nil {
		return nil
	}
	err := p.file.Close()
	p.file = nil
	return errors.Join(err, p.view.removeFile(p.temp))
}

// Commit gives the artifact its name and, if link is not empty, makes [LinkIndex] or [LinkLatest] point to it. An
// existing file of that name is replaced atomically. If Commit fails, the previous file is still there; but with a
// [*LinkError] the artifact is stored, and the returned Artifact is valid.
func (p *Pending) Commit(file, link string) (Artifact, error) {
	if p.file == nil {
		return Artifact{}, os.ErrClosed
	}
	a, err := p.commit(file, link)
	if err != nil {
		_ = p.Discard() // the next lock sweeps a file that remains
		return Artifact{}, err
	}
	if link != "" {
		err = p.view.relink(p.key.dir(), file, link)
	}
	if err != nil {
		return a, &LinkError{err}
	}
	return a, nil
}

func (p *Pending) commit(file, link string) (Artifact, error) {
	if !isArtifact(file) || link != "" && !isLink(link) {
		return Artifact{}, notName("artifact", path.Join(file, link))
	}
	a := Artifact{
		Path:           path.Join(p.key.dir(), file),
		Digest:         p.Digest().String(),
		Size:           p.Size(),
		LastUpdateTime: p.store.options.Now().UTC().Truncate(time.Second),
	}
	if p.err != nil {
		return Artifact{}, fmt.Errorf("artifact is incomplete: %w", p.err)
	}
	// Retention uses this time, which should be the lastUpdateTime of the artifact. If a file system cannot set it,
	// the time of the write is close enough.
	_ = p.view.Chtimes(p.temp, a.LastUpdateTime)
	if err := p.store.announce(p.view, p.key, a); err != nil {
		return Artifact{}, err
	}
	if err := p.rename(a); err != nil {
		return Artifact{}, err
	}
	return a, nil
}

func (p *Pending) rename(a Artifact) error {
	// Windows does not rename an open file.
	err := p.file.Close()
	p.file = nil
	linked := err == nil && p.store.link(p.view, p.temp, a)
	if err == nil {
		err = p.view.Rename(p.temp, a.Path)
	}
	if linked { // Rename does nothing if both names are the same file
		_ = p.view.removeFile(p.temp)
	}
	if err == nil {
		p.store.noteBytes(a.Path, a.Digest, func() (fs.FileInfo, error) { return p.view.Lstat(a.Path) })
		return nil
	}
	_ = p.view.Remove(p.temp)
	// Nor does Windows replace a file that is open for reading. That does not matter if the bytes are the same.
	if sum, sumErr := p.store.sum(a.Path, p.Digest()); sumErr == nil && sum == p.Digest() {
		return nil
	}
	return withPath(a.Path, err)
}

// A replacement records that an artifact is about to replace an artifact with the same name, as a version that was
// published twice does. Until the object is recorded again, its status has the old digest; with the replacement, a
// killed run does not look like an altered file.
type replacement struct {
	Path   string `json:"path"`
	Digest string `json:"digest"`
	// Before is the digest of an announced artifact that is replaced again before the object was recorded.
	Before string `json:"before,omitempty"`
}

func (s *Store) announce(v *view, key Key, a Artifact) error {
	_, err := v.Lstat(a.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	data, err := json.Marshal(replacement{a.Path, a.Digest, s.replaced(a.Path).String()})
	if err != nil {
		return err
	}
	return s.writeFile(v, key.next(), bytes.NewReader(data))
}

// A LinkError reports that an artifact was stored, but its link could not be set. It is a separate type because Flux
// continues after this error.
type LinkError struct{ Err error }

func (e *LinkError) Error() string { return e.Err.Error() }
func (e *LinkError) Unwrap() error { return e.Err }

// Relink points the link of an object, whose lock must be held, to its artifact again if the link is missing or
// differs. Its error for a failed link is a [*LinkError].
func (s *Store) Relink(artifact, link string) error {
	key, err := splitPath(artifact)
	if err != nil || !isLink(link) {
		return notName("artifact", path.Join(artifact, link))
	}
	_, v, err := s.locked(key)
	if err != nil {
		return err
	}
	if err := v.relink(key.dir(), path.Base(artifact), link); err != nil {
		return &LinkError{err}
	}
	return nil
}

// relink makes dir/link point to the file beside it. The link is durable once the directory is.
func (v *view) relink(dir, file, link string) error {
	name := path.Join(dir, link)
	if target, err := v.Readlink(name); err == nil && target == file {
		return nil
	}
	temp := path.Join(dir, tempPrefix+rand.Text())
	if err := v.at(temp, func(d *os.Root, base string) error { return makeLink(d, file, base) }); err != nil {
		return withPath(name, err)
	}
	if err := v.Rename(temp, name); err != nil {
		_ = v.Remove(temp)
		return withPath(name, err)
	}
	return nil
}

// linker is the part of os.Root that creates links. Some systems allow only one of the two kinds.
type linker interface {
	Symlink(target, name string) error
	Link(file, name string) error
}

// makeLink creates a link to file in the same directory. The target is relative, so that the directory can be moved,
// packed and served. Where symbolic links are not permitted, as on Windows without developer mode, name becomes a
// hard link to the file, which reads the same.
func makeLink(l linker, file, name string) error {
	err := l.Symlink(file, name)
	if err != nil && l.Link(file, name) == nil {
		return nil
	}
	return err
}
