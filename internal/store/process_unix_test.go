//go:build unix

package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const fileLimit = 50_000

// fillDisk plays a full disk: no file may grow beyond the limit.
func fillDisk(s *Store) error {
	signal.Ignore(syscall.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: fileLimit, Max: fileLimit}); err != nil {
		return err
	}
	unlock, err := s.Lock(context.Background(), chartKey)
	if err != nil {
		return err
	}
	defer unlock()
	p, err := s.Create(chartKey)
	if err != nil {
		return err
	}
	_, writeErr := p.Write(make([]byte, 2*fileLimit))
	_, againErr := p.Write([]byte("x"))
	_, commitErr := p.Commit("x-2.0.0.tgz", LinkLatest)
	for _, err := range []error{writeErr, againErr, commitErr} {
		if !errors.Is(err, syscall.EFBIG) || strings.Contains(err.Error(), tempPrefix) {
			return fmt.Errorf("a write beyond the limit: %w", err)
		}
	}
	if err := s.Remember(chartKey, &Record{Fingerprint: strings.Repeat("x", 2*fileLimit)}, nil); !errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("a record beyond the limit: %w", err)
	}
	// A smaller one still fits, in the same file.
	p, err = s.Create(chartKey)
	if err != nil {
		return err
	}
	if _, err := p.Write(make([]byte, 2*fileLimit)); err == nil {
		return errors.New("a write beyond the limit succeeds")
	}
	if err := p.Reset(); err != nil {
		return err
	}
	if _, err := p.Write([]byte("fits")); err != nil {
		return err
	}
	_, err = p.Commit("x-3.0.0.tgz", "")
	return err
}

func TestFullDisk(t *testing.T) {
	s := newStore(t)
	unlock := lock(t, s, chartKey)
	a := put(t, s, chartKey, "x-1.0.0.tgz", LinkLatest, "previous")
	remember(t, s, chartKey, &Record{Fingerprint: "previous"})
	unlock()
	if err := child(t, "full", s.Dir(), 0).Run(); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, s.Dir(),
		".helmsrc/v1/helmchart/apps/podinfo.json",
		"helmchart/apps/podinfo/latest.tar.gz -> x-1.0.0.tgz",
		"helmchart/apps/podinfo/x-1.0.0.tgz",
		"helmchart/apps/podinfo/x-3.0.0.tgz",
	)
	if err := s.Verify(a.Path, a.Digest); err != nil {
		t.Error(err)
	}
	if r, err := s.Recall(chartKey); err != nil || r.Fingerprint != "previous" {
		t.Errorf("recalled %v, %v", r, err)
	}
}

// writeNowhere tries to write as an ordinary user in directories that are closed.
func writeNowhere(s *Store) error {
	if os.Geteuid() == 0 {
		const nobody = 65534
		if err := syscall.Setuid(nobody); err != nil {
			return err
		}
	}
	var dirError *DirectoryError
	_, err := s.Lock(context.Background(), chartKey)
	if !errors.As(err, &dirError) || !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("lock in a closed directory: %w", err)
	}
	below, err := Open(filepath.Join(s.Dir(), "below"), testOptions())
	if err != nil {
		return err
	}
	_, err = below.Lock(context.Background(), chartKey)
	if !errors.As(err, &dirError) || !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("create below a closed directory: %w", err)
	}
	_, err = s.Keys()
	return err
}

func TestUnwritable(t *testing.T) {
	dir := t.TempDir()
	// An ordinary user must be able to get there.
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir = filepath.Join(dir, "artifacts")
	if err := os.Mkdir(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	if err := child(t, "unwritable", dir, 0).Run(); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir)
}
