package file

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	var size *SizeError
	tests := []struct {
		name  string
		limit int64
		want  string
		fails func(error) bool
	}{
		{name, 5, "12345", func(err error) bool { return err == nil }},
		{name, 4, "12345", func(err error) bool { return errors.As(err, &size) && size.Limit == 4 }},
		{name, 2, "123", func(err error) bool { return errors.As(err, &size) }},
		{name + "x", 5, "", func(err error) bool { return errors.Is(err, fs.ErrNotExist) }},
		{filepath.Dir(name), 5, "", func(err error) bool { return err != nil }},
	}
	for _, tt := range tests {
		got, err := Read(t.Context(), tt.name, tt.limit)
		if string(got) != tt.want || !tt.fails(err) {
			t.Errorf("%s up to %d: %q, %v", tt.name, tt.limit, got, err)
		}
	}
}

// TestReadAllGivesUp ends the wait for an endless pipe with the cause of the context.
func TestReadAllGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	r, w := io.Pipe()
	defer w.Close()
	go func() {
		_, _ = io.WriteString(w, "begun")
		cancel(cause)
	}()
	if _, err := ReadAll(ctx, r, 10); !errors.Is(err, cause) {
		t.Errorf("error %v, want the cause", err)
	}
}

func TestOpenLooksFirst(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	root, err := OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	root.Close()
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("opening a directory: %v", err)
	}
	if _, err := OpenRoot(name); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("opening a file as a directory: %v", err)
	}
	for _, open := range []func() error{
		func() error { _, err := Open(name + "x"); return err },
		func() error { _, err := OpenRoot(name + "x"); return err },
	} {
		if err := open(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a missing file: %v", err)
		}
	}
}

func TestSame(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := errors.Join(os.WriteFile(a, nil, 0o600), os.WriteFile(b, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for other, want := range map[string]bool{a: true, filepath.Join(dir, ".", "a"): true, b: false, dir: false, filepath.Join(dir, "c"): false} {
		if Same(a, other) != want || Same(other, a) != want {
			t.Errorf("%s is the same: %v", other, !want)
		}
	}
}
