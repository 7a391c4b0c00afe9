package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
)

const (
	scratchPrefix = "helmsrc-"
	scratchLock   = ".lock"

	// scratchNameLength is the length of the result of rand.Text.
	scratchNameLength = 26

	// maxScratchRaces is the limit of attempts at which another process mistakes our new lock for an abandoned one.
	maxScratchRaces = 10
	// maxScratchNames is the limit of names that are read in a crowded temporary directory.
	maxScratchNames = 100_000
)

// A Scratch is a directory for files that do not outlive the process, in the system's temporary directory or in
// Parent. Beside it is a lock that this process holds while it lives: a later process that gets the lock removes the
// directory. The zero value is ready for concurrent use.
type Scratch struct {
	Parent string // "" is the system's temporary directory
	Hidden bool   // the names begin with a dot, for a Parent that users list

	mu   sync.Mutex
	root *os.Root // the root of the parent; nil before the first use
	name string
	lock *os.File // nil if the file system has no locks
}

// Dir returns the path of the directory, and creates it on first use.
func (s *Scratch) Dir() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parent := s.Parent
	if parent == "" {
		parent = os.TempDir()
	}
	if s.root == nil {
		err := s.make(parent)
		if err != nil && s.Parent == "" {
			err = &finding.Problem{
				// The name differs in every run.
				Text:   fmt.Sprintf("temporary directory '%s': %v", parent, file.Cause(err)),
				Advice: file.TempDirVariable + " names a directory for temporary files, which has to exist and be writable",
				Err:    err,
			}
		}
		if err != nil {
			return "", err
		}
	}
	return filepath.Join(parent, s.name), nil
}

func (s *Scratch) make(parent string) error {
	root, err := file.OpenRoot(parent)
	if err != nil {
		return err
	}
	prefix := scratchPrefix
	if s.Hidden {
		prefix = "." + prefix
	}
	collectScratch(root, prefix)
	name, lock, err := lockScratch(root, prefix)
	if err == nil {
		err = root.Mkdir(name, dirMode)
	}
	if err != nil {
		releaseScratch(root, name, lock)
		return errors.Join(err, root.Close())
	}
	s.root, s.name, s.lock = root, name, lock
	return nil
}

// lockScratch returns an unused name, and its lock.
func lockScratch(root *os.Root, prefix string) (string, *os.File, error) {
	for range maxScratchRaces {
		name := prefix + rand.Text()
		f, err := root.OpenFile(name+scratchLock, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
		if err != nil {
			return "", nil, err
		}
		ok, err := tryLock(f)
		if err != nil {
			// The file system has no locks: no other process can find out whether the directory is in use.
			return name, nil, errors.Join(f.Close(), root.Remove(name+scratchLock))
		}
		if ok {
			ok, err = isCurrent(root, name+scratchLock, f)
		}
		if ok {
			_, err = f.WriteString(scratchMark(name))
		}
		if ok && err == nil {
			return name, f, nil
		}
		// Another process opened the lock before we held it, and takes it for abandoned because it is empty.
		gone := root.Remove(name + scratchLock)
		if errors.Is(gone, fs.ErrNotExist) {
			gone = nil
		}
		if err := errors.Join(err, f.Close(), gone); err != nil {
			return "", nil, err
		}
	}
	return "", nil, fmt.Errorf("cannot lock a file in '%s'", root.Name())
}

// scratchMark returns the content of the lock of a directory. Without it, the directory is not removed.
func scratchMark(name string) string { return "temporary directory of helmsrc: " + name + "\n" }

// isScratch reports whether this program wrote a lock for this user, with its own name in it. An empty lock is from a
// process that was killed before it wrote the mark: then the directory does not exist yet.
func isScratch(root *os.Root, f *os.File, name string) bool {
	fi, err := f.Stat()
	mark := scratchMark(name)
	if err == nil && fi.Size() == 0 {
		_, absent := root.Lstat(name)
		return file.Owned(fi) && errors.Is(absent, fs.ErrNotExist)
	}
	if err != nil || fi.Size() != int64(len(mark)) || !file.Owned(fi) {
		return false
	}
	text := make([]byte, len(mark))
	n, err := f.ReadAt(text, 0)
	return n == len(mark) && (err == nil || errors.Is(err, io.EOF)) && string(text) == mark
}

// removable reports whether a name is missing, or is a directory of this user.
func removable(root *os.Root, name string) bool {
	fi, err := root.Lstat(name)
	return errors.Is(err, fs.ErrNotExist) || err == nil && fi.IsDir() && file.Owned(fi)
}

func releaseScratch(root *os.Root, name string, lock *os.File) {
	if lock != nil {
		_ = root.Remove(name + scratchLock)
		_ = lock.Close()
		_ = root.Remove(name + scratchLock) // some systems do not remove an open file
	}
}

// Close removes the directory if it exists.
func (s *Scratch) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root == nil {
		return nil
	}
	err := s.root.RemoveAll(s.name)
	releaseScratch(s.root, s.name, s.lock)
	err = errors.Join(err, s.root.Close())
	s.root, s.lock = nil, nil
	return err
}

// collectScratch removes the directories of processes that were killed. A directory that cannot be removed only takes
// up space.
func collectScratch(root *os.Root, prefix string) {
	dir, err := root.Open(".")
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(maxScratchNames)
	for _, file := range names {
		if name, ok := strings.CutSuffix(file, scratchLock); ok && strings.HasPrefix(name, prefix) && len(name) == len(prefix)+scratchNameLength {
			collectAbandoned(root, name)
		}
	}
}

func collectAbandoned(root *os.Root, name string) {
	// Any user may create files in a directory for temporary files, and opening a pipe can block forever.
	if fi, err := root.Lstat(name + scratchLock); err != nil || !fi.Mode().IsRegular() {
		return
	}
	f, err := root.OpenFile(name+scratchLock, os.O_RDWR, 0)
	if err != nil {
		return
	}
	ok, err := tryLock(f)
	if err == nil && ok {
		ok, err = isCurrent(root, name+scratchLock, f)
	}
	if err != nil || !ok || !isScratch(root, f, name) || !removable(root, name) {
		_ = f.Close()
		return
	}
	if root.RemoveAll(name) != nil {
		_ = f.Close()
		return
	}
	releaseScratch(root, name, f)
}
