package git

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/helmsrc/helmsrc/internal/fetch"
)

const (
	gitObjectCache = 32 << 20
	// largeObject is the size from which a file is not read into memory to be written.
	largeObject = 1 << 20
)

// gitStore keeps the objects of a repository on disk while its files are written.
type gitStore struct {
	dir     string
	limits  Limits
	objects *filesystem.Storage
}

func newGitStore(parent string, limits Limits) (*gitStore, error) {
	dir, err := os.MkdirTemp(parent, "helmsrc-git-*")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "objects", "pack"), 0o700); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	s := &gitStore{dir: dir, limits: limits}
	s.open()
	return s, nil
}

// open has to be called again when there is another pack.
func (s *gitStore) open() {
	if s.objects != nil {
		_ = s.objects.Close()
	}
	s.objects = filesystem.NewStorageWithOptions(osfs.New(s.dir), cache.NewObjectLRU(gitObjectCache), filesystem.Options{
		ExclusiveAccess: true, KeepDescriptors: true, LargeObjectThreshold: largeObject,
	})
}

func (s *gitStore) Close() {
	_ = s.objects.Close()
	_ = os.RemoveAll(s.dir)
}

// fetch downloads a pack and makes its objects known.
func (s *gitStore) fetch(ctx context.Context, remote *gitRemote, q packRequest) error {
	stream, err := remote.pack(ctx, q, s.limits.Pack)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	f, err := os.CreateTemp(s.dir, "pack-*")
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := s.download(stream, f); err != nil {
		return err
	}
	return s.index(ctx, f)
}

// download writes a pack to disk, and inspects it meanwhile: its objects must fit the limits before anything else reads
// them.
func (s *gitStore) download(stream io.Reader, f *os.File) error {
	t := &fetch.Tee{From: stream, To: f}
	err := s.inspect(packfile.NewScanner(t))
	if err == nil {
		_, err = io.Copy(io.Discard, t)
	}
	if t.Err != nil {
		return fmt.Errorf("failed to write the download: %w", t.Err)
	}
	return err
}

func (s *gitStore) inspect(pack *packfile.Scanner) error {
	_, count, err := pack.Header()
	if err != nil {
		return cutShort(err)
	}
	if int64(count) > int64(s.limits.Objects) {
		return tooLarge("number of objects", int64(s.limits.Objects))
	}
	unpacked := s.limits.Unpacked
	for range count {
		size, err := s.objectSize(pack)
		if err != nil {
			return err
		}
		if unpacked -= size; unpacked < 0 {
			return tooLarge("unpacked size", s.limits.Unpacked)
		}
	}
	_, err = pack.Checksum()
	return cutShort(err)
}

var errBrokenPack = errors.New("the server has sent a broken pack")

// objectSize reads an object and returns how large it is once unpacked.
func (s *gitStore) objectSize(pack *packfile.Scanner) (int64, error) {
	h, err := pack.NextObjectHeader()
	if err != nil {
		return 0, cutShort(err)
	}
	if err := s.checkSize(h.Length); err != nil {
		return 0, err
	}
	start := &fetch.Prefix{Limit: maxPrefix}
	n, _, err := pack.NextObject(start)
	if err != nil {
		return 0, cutShort(err)
	}
	size := int64(0)
	if h.Type.IsDelta() {
		size = deltaTarget(start.Bytes)
	}
	if n != h.Length || size < 0 {
		return 0, errBrokenPack
	}
	return h.Length + size, s.checkSize(size)
}

func (s *gitStore) checkSize(size int64) error {
	if size < 0 || size > s.limits.Object {
		return tooLarge("largest file", s.limits.Object)
	}
	return nil
}

// maxPrefix is two numbers of ten digits of seven bits.
const maxPrefix = 20

// deltaTarget returns the second of the two numbers that a delta begins with, the size of its result, or a negative number.
func deltaTarget(delta []byte) int64 {
	_, n := binary.Uvarint(delta)
	size, m := binary.Uvarint(delta[max(n, 0):])
	if n <= 0 || m <= 0 {
		return -1
	}
	return int64(size)
}

// index computes the objects' hashes and puts pack and index where the storage finds them.
func (s *gitStore) index(ctx context.Context, f *os.File) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var writer idxfile.Writer
	parser, err := packfile.NewParser(packfile.NewScanner(interruptedFile{f, ctx}), &writer)
	if err != nil {
		return err
	}
	checksum, err := parser.Parse()
	switch {
	case ctx.Err() != nil:
		return fetch.EndOf(ctx)
	case errors.Is(err, packfile.ErrEmptyPackfile):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", errBrokenPack, err)
	}
	index, err := writer.Index()
	if err != nil {
		return err
	}
	base := filepath.Join(s.dir, "objects", "pack", "pack-"+checksum.String())
	if _, err := os.Lstat(base + ".pack"); err == nil {
		return nil // it came from the cache, without a pack that it needs
	}
	if err := writeIndex(base+".idx", index); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), base+".pack"); err != nil {
		return err
	}
	s.open()
	return nil
}

func writeIndex(name string, index *idxfile.MemoryIndex) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = idxfile.NewEncoder(f).Encode(index)
	return errors.Join(err, f.Close())
}

// interruptedFile reads until the context ends.
type interruptedFile struct {
	*os.File
	ctx context.Context
}

func (f interruptedFile) Read(b []byte) (int, error) {
	if f.ctx.Err() != nil {
		return 0, fetch.EndOf(f.ctx)
	}
	return f.File.Read(b)
}
