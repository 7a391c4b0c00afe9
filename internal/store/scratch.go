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

	// scratchNameLength is the length of what rand.Text gives.
	scratchNameLength = 26

	// maxScratchRaces bounds how often another process may take our new lock for an abandoned one.
	maxScratchRaces = 10
	// maxScratchNames bounds how much of a crowded temporary directory is looked through.
	maxScratchNames = 100_000
)

// A Scratch is a directory for what is not to outlive the process, in the system's directory for such or a given one. Beside it is a
// lock that this process holds while it lives: a later process that can have the lock removes what was left behind. The
// zero value is ready for use, by many goroutines.
type Scratch struct {
	Parent string // empty is the system's
	Hidden bool   // the names begin with a dot: a directory that people look at

	mu   sync.Mutex
	root *os.Root // of the parent; nil before the directory is needed
	name string
	lock *os.File // nil where the file system has no locks
}

// Dir returns the directory, which is made on first use.
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
				// The name is another one in every run.
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

// lockScratch finds a name that is not taken.
func lockScratch(root *os.Root, prefix string) (string, *os.File, error) {
	for range maxScratchRaces {
		name := prefix + rand.Text()
		f, err := root.OpenFile(name+scratchLock, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
		if err != nil {
			return "", nil, err
		}
		ok, err := tryLock(f)
		if err != nil {
			// A file system without locks: no other process can find out whether the directory is in use.
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
		// Another process looked at the lock before it was ours, and takes it for an abandoned one: nothing stands in it.
		gone := root.Remove(name + scratchLock)
		if errors.Is(gone, fs.ErrNotExist) {
			gone = nil
		}
		if err := errors.Join(err, f.Close(), gone); err != nil {
			return "", nil, err
		}
	}
	return "", nil, fmt.Errorf("no lock can be had in '%s'", root.Name())
}

// scratchMark is what stands in the lock of a directory: without it, nothing is removed.
func scratchMark(name string) string { return "temporary directory of helmsrc: " + name + "\n" }

// isScratch reports whether a lock was made by this program for this user, and has its own name in it.
// In an empty one, of a process that was killed before it wrote into it, there is no directory yet.
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

// removable reports whether what has the name of a directory is one of this user, or nothing.
func removable(root *os.Root, name string) bool {
	fi, err := root.Lstat(name)
	return errors.Is(err, fs.ErrNotExist) || err == nil && fi.IsDir() && file.Owned(fi)
}

func releaseScratch(root *os.Root, name string, lock *os.File) {
	if lock != nil {
		_ = root.Remove(name + scratchLock)
		_ = lock.Close()
		_ = root.Remove(name + scratchLock) // where an open file cannot be removed
	}
}

// Close removes the directory, if there is one.
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

// collectScratch removes what processes left behind that were killed. What cannot be removed does no harm but to take
// room.
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
	// Any user may put something into a directory for temporary files, and opening a pipe can block forever.
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
