// Package lockfile reads and writes the lock file. Several processes may write it at the same time, and each may be killed at
// any moment: the file is always complete, and no entry of another process is lost.
package lockfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"time"

	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/rewrite"
	"github.com/helmsrc/helmsrc/internal/work"
)

// failure returns the error of a lock file that cannot be read or written.
func failure(name string, err error) error {
	p := &finding.Problem{Text: fmt.Sprintf("%s: %v", name, file.Cause(err)), Err: err}
	var content *lock.Error
	switch {
	case errors.As(err, &content):
		if content.Line > 0 {
			p.Text = fmt.Sprintf("%s:%d: %s", name, content.Line, content.Msg)
		}
		p.Advice = content.Hint
	case errors.Is(err, fs.ErrNotExist):
		p.Advice = finding.WriteLock
	case errors.Is(err, rewrite.ErrIrregular), errors.Is(err, file.ErrOutside):
		p.Advice = finding.OtherLock
	case errors.Is(err, rewrite.ErrReadOnly), errors.Is(err, fs.ErrPermission):
		p.Advice = "let this user write it, or " + finding.OtherLock
	}
	return p
}

// Read returns the content of a lock file. The error for a missing file matches [fs.ErrNotExist].
func Read(name string) (*lock.Lock, error) {
	l, _, err := read(name)
	return l, err
}

func read(name string) (*lock.Lock, *rewrite.File, error) {
	f, err := rewrite.Read(name, lock.MaxBytes)
	if err != nil {
		var size *file.SizeError
		if errors.As(err, &size) {
			err = fmt.Errorf("larger than %d MiB", lock.MaxBytes>>20)
		}
		return nil, nil, failure(name, err)
	}
	l, err := lock.Read(f.Data)
	if err != nil {
		return nil, nil, failure(name, err)
	}
	return l, f, nil
}

// Check returns an error if a lock file cannot be changed. It is called before anything is fetched for the file.
func Check(name string) error {
	if err := rewrite.Writable(name); err != nil {
		return failure(name, err)
	}
	return nil
}

// The limit of the attempts to write a file that other processes write, and the time between them. Other processes keep it
// locked for some milliseconds.
const (
	attempts = 200
	pause    = 20 * time.Millisecond
)

// Change calls change to edit the entries of a lock file, and creates the file if it is missing and has entries. It calls
// change again after another process has written the file meanwhile. It does not write a file whose content stays the same.
func Change(ctx context.Context, name string, change func(*lock.Lock)) (changed bool, err error) {
	for n := 0; ; n++ {
		changed, err = try(name, change)
		passing := errors.Is(err, rewrite.ErrBusy) || errors.Is(err, rewrite.ErrChanged) || errors.Is(err, fs.ErrExist)
		if !passing || n == attempts {
			return changed, err
		}
		wait := pause/2 + rand.N(pause) //nolint:gosec // that not all wait for equally long is no secret
		if err := work.Sleep(ctx, wait); err != nil {
			return false, err
		}
	}
}

func try(name string, change func(*lock.Lock)) (bool, error) {
	l, f, err := read(name)
	if errors.Is(err, fs.ErrNotExist) {
		l, f, err = lock.New(), nil, nil
	}
	if err != nil {
		return false, err
	}
	change(l)
	text, err := l.Write()
	if err != nil {
		return false, failure(name, err)
	}
	switch {
	case f == nil:
		err = rewrite.Create(name, text)
	case bytes.Equal(text, f.Data):
		return false, nil
	default:
		err = f.Replace(text)
	}
	if err != nil {
		return false, failure(name, err)
	}
	return true, nil
}
