//go:build unix

package file

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestPipes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(name); !errors.Is(err, ErrIrregular) {
		t.Errorf("Open: %v", err)
	}
	if _, err := OpenRoot(name); !errors.Is(err, errNoDirectory) {
		t.Errorf("OpenRoot: %v", err)
	}
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(name, []byte("hello"), 0o600) }()
	if got, err := Read(t.Context(), name, 10); err != nil || string(got) != "hello" {
		t.Errorf("Read: %q, %v", got, err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	var size *SizeError
	if _, err := Read(t.Context(), "/dev/zero", 10); !errors.As(err, &size) {
		t.Errorf("an endless device: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, name, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("a pipe that nobody writes to: %v", err)
	}
}
