// Package store owns the artifacts directory: a file in it appears whole or not at all, one process at a time changes
// an object, and no name leads out of it. It knows neither the content of an artifact nor the meaning of a status.
//
// The layout is as follows. The files of an object are protected by its lock.
//
//	<kind>/<namespace>/<name>/<file>            artifacts, and the link index.yaml or latest.tar.gz
//	.helmsrc/v1/<kind>/<namespace>/<name>.json  the record of the object
//	.helmsrc/v1/<kind>/<namespace>/<name>.lock  its lock
//	.helmsrc/v1/<kind>/<namespace>/<name>.next  a replacement of an artifact with the same name, until it is recorded
//	.helmsrc/v1/book, book.lock                 the records of all objects without artifacts
//	.helmsrc/v1/shard                           the part of a selection that a run fetched
//
// The kind is in lower case. Artifacts and their directories have the modes that the umask leaves, so that another
// user, such as a web server, can read them; only the owner can read .helmsrc. A file that the store cannot have
// written is left alone, and so is the directory around it.
package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/file"
)

const (
	fileMode fs.FileMode = 0o600 // for the program's own files
	dirMode  fs.FileMode = 0o700

	artifactMode    fs.FileMode = 0o666 // before the umask
	artifactDirMode fs.FileMode = 0o777
)

// Options are the options of a store.
type Options struct {
	// Algorithm computes the digests of new artifacts; empty means SHA-256. Stored artifacts are verified with their own.
	Algorithm godigest.Algorithm
	// RetentionTTL and RetentionRecords decide which earlier artifacts [Store.Collect] removes.
	RetentionTTL     time.Duration
	RetentionRecords int
	// Kinds are the kinds whose directories are recognised even if an object has no record, as in a copy of the
	// artifacts directory without the hidden files.
	Kinds []string
	// Shared are the kinds whose objects have no artifacts. Their records are in one file, and need no locks.
	Shared []string
	// Now is required.
	Now func() time.Time
}

// A Store is one artifacts directory. Open creates it, once per run, and Close ends it. It is safe for concurrent
// use; the files of an object are changed only by the holder of its Lock.
type Store struct {
	dir     string
	options Options

	renamed map[Key]Key // see Rename
	shared  sharedRecords
	links   links
	whole   *Store // see LinkTo
	part    string // the path of this store in whole

	unsynced atomic.Bool // a record was written since the last Save

	mu    sync.Mutex
	view  *view                 // nil until the directory exists
	turns map[Key]chan struct{} // one token per object: its holder may try for the file lock
}

// Open returns the store in dir, which need not exist: it is created by the first write. The error is a [*finding.Problem] if a newer
// program wrote to it.
func Open(dir string, o Options) (*Store, error) {
	if dir == "" {
		return nil, errors.New("no artifacts directory given")
	}
	if o.Now == nil {
		return nil, errors.New("the artifacts directory needs a clock")
	}
	if o.Algorithm == "" {
		o.Algorithm = godigest.SHA256
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("artifacts directory %s: %w", dir, err)
	}
	if err := refuseLayout(dir); err != nil {
		return nil, err
	}
	return &Store{dir: abs, options: o, turns: map[Key]chan struct{}{}}, nil
}

// Dir returns the absolute path of the artifacts directory, for the file:// URLs of artifacts.
func (s *Store) Dir() string { return s.dir }

// Close closes the directory.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view == nil {
		return nil
	}
	v := s.view
	s.view = nil
	return v.close()
}

// existing opens the directory. The error matches fs.ErrNotExist if the directory does not exist.
func (s *Store) existing() (*view, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view != nil {
		return s.view, nil
	}
	root, err := file.OpenRoot(s.dir)
	if err != nil {
		return nil, fmt.Errorf("artifacts directory: %w", err)
	}
	s.view = newView(root)
	return s.view, nil
}

// created opens the directory, and creates it first if necessary.
func (s *Store) created() (*view, error) {
	v, err := s.existing()
	if err == nil {
		return v, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, &DirectoryError{err}
	}
	if err := os.MkdirAll(s.dir, artifactDirMode); err != nil {
		return nil, &DirectoryError{fmt.Errorf("artifacts directory: %w", err)}
	}
	if v, err = s.existing(); err != nil {
		return nil, &DirectoryError{err}
	}
	return v, nil
}

// Writable returns an error, with the whole path, if the directory is not writable, or does not exist and cannot be
// created. It changes nothing.
func (s *Store) Writable() error {
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		return err
	}
	for at := dir; ; at = filepath.Dir(at) {
		fi, err := os.Stat(at)
		switch {
		case (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) && at != filepath.Dir(at):
			continue
		case err == nil && !fi.IsDir():
			err = withPath(at, errNotDirectory)
		case err == nil:
			err = withPath(at, mayWrite(at))
		}
		if err == nil || at == dir {
			return err
		}
		return fmt.Errorf("%s cannot be created: %w", dir, err)
	}
}

// A DirectoryError reports that a directory could not be created. It is a separate type because Flux reports it with
// its own reason, DirectoryCreationFailed.
type DirectoryError struct{ Err error }

func (e *DirectoryError) Error() string { return e.Err.Error() }
func (e *DirectoryError) Unwrap() error { return e.Err }

var errNotDirectory = errors.New("is not a directory")

func emptyIfNone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDirectory) {
		return nil
	}
	return err
}

// withPath returns an error with the name that the user knows, not with that of a temporary file.
func withPath(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, file.Cause(err))
}

// removeFile removes a file that may not exist. It calls Lstat first: nearly always the file does not exist, and
// Remove then makes two system calls.
func (v *view) removeFile(name string) error {
	_, err := v.Lstat(name)
	if err == nil {
		err = v.Remove(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writeFile replaces the file name by data atomically: after a failure the previous file is still there. The caller
// must hold the lock of the object, since the temporary name is always the same.
func (s *Store) writeFile(v *view, name string, data io.WriterTo) error {
	temp := name + tempSuffix
	err := writeTemp(v, temp, data)
	if err == nil {
		err = v.Rename(temp, name)
	}
	if err != nil {
		_ = v.Remove(temp) // what stays is swept by the next lock
		return withPath(name, err)
	}
	s.unsynced.Store(true)
	return nil
}

func writeTemp(v *view, temp string, data io.WriterTo) error {
	// The file of a killed process, or a planted link, is removed first.
	if err := v.removeFile(temp); err != nil {
		return err
	}
	f, err := v.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = data.WriteTo(f)
	return errors.Join(err, f.Close())
}
