package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/helmsrc/helmsrc/internal/work"
)

const (
	// The lock is polled, because no system call waits for a lock and a context at once.
	minLockWait = 5 * time.Millisecond
	maxLockWait = 200 * time.Millisecond

	// maxLockRaces is the limit of retries when the directory of a lock file vanishes: a prune by another process
	// removes it once in a while, a deleted artifacts directory fails every time.
	maxLockRaces = 10
)

// errNotLocked reports a change to an object's files without holding its lock.
var errNotLocked = errors.New("the object is not locked")

// Lock waits until this process has exclusive use of the object, among all processes that use the directory and all
// goroutines of this process. It removes unfinished files of a killed process. The caller must call the returned
// function once the object is stored and recorded; further calls do nothing.
func (s *Store) Lock(ctx context.Context, key Key) (unlock func() error, err error) {
	key, err = s.stored(key)
	if err != nil {
		return nil, err
	}
	v, err := s.created()
	if err != nil {
		return nil, err
	}
	turn := s.turn(key)
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, lockError(key, context.Cause(ctx))
	}
	f, err := waitForLock(ctx, v, key.lock())
	if err != nil {
		<-turn
		return nil, lockError(key, err)
	}
	v.sweep(key)
	return sync.OnceValue(func() error {
		err := f.Close() // closing releases the lock, too
		<-turn
		return err
	}), nil
}

func lockError(key Key, err error) error { return fmt.Errorf("lock %s: %w", key, err) }

func (s *Store) turn(key Key) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns[key] == nil {
		s.turns[key] = make(chan struct{}, 1)
	}
	return s.turns[key]
}

// locked returns the checked key and the directory if the object's lock is held.
func (s *Store) locked(key Key) (Key, *view, error) {
	key, err := s.stored(key)
	if err != nil {
		return Key{}, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.turns[key]) == 0 || s.view == nil {
		return Key{}, nil, fmt.Errorf("%s: %w", key, errNotLocked)
	}
	return key, s.view, nil
}

func waitForLock(ctx context.Context, v *view, name string) (*os.File, error) {
	races, waited := 0, time.Duration(0)
	for wait := minLockWait; ; wait = min(2*wait, maxLockWait) {
		f, err := tryLockFile(v, name)
		if f != nil {
			return f, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			races++
		}
		if err != nil && (races == 0 || races > maxLockRaces) {
			return nil, err
		}
		v.forget() // without a lock of ours, the directory may be removed and created again
		if err := work.Sleep(ctx, wait); err != nil {
			return nil, err
		}
		if waited += wait; waited >= noticeAfter && waited-wait < noticeAfter {
			notice(ctx)
		}
	}
}

// tryLockFile returns neither a file nor an error if another process has the lock.
func tryLockFile(v *view, name string) (*os.File, error) {
	f, err := openLock(v, name)
	if err != nil {
		return nil, err
	}
	ok, err := tryLock(f)
	if err == nil && ok {
		ok, err = isCurrent(v, name, f)
	}
	if err != nil || !ok {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func openLock(v *view, name string) (*os.File, error) {
	if err := v.makeDir(path.Dir(name)); err != nil {
		return nil, err
	}
	fi, err := v.Lstat(name)
	if err == nil && !fi.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errIrregular}
	}
	return v.OpenFile(name, os.O_RDWR|os.O_CREATE, fileMode)
}

// isCurrent reports whether f is still the file of that name. A prune removes the lock file while it holds the lock:
// a process that waited for it has then locked a file that no other process will see.
func isCurrent(dir lstater, name string, f *os.File) (bool, error) {
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return os.SameFile(mine, there), nil
}

// sweep removes the unfinished files of a process that was killed while it held the lock. A file that cannot be
// removed only takes up space; the next operation reports a directory that cannot be written to.
func (v *view) sweep(key Key) {
	_ = v.removeFile(key.record() + tempSuffix)
	_ = v.removeFile(key.next() + tempSuffix)
	entries, _ := v.ReadDir(key.dir())
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) && !e.IsDir() {
			_ = v.Remove(path.Join(key.dir(), e.Name()))
		}
	}
}

// lstater is a directory, or a view of several.
type lstater interface {
	Lstat(name string) (fs.FileInfo, error)
}
