// Package inputs reads manifests for tests of packages that work on the inputs of a session. No test has a network.
package inputs

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/session"
)

// Printed collects the output of a console.
type Printed struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *Printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *Printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

var errNoNetwork = errors.New("no network")

// Worker returns a worker, and the output of its console.
func Worker() (*session.Worker, *Printed) {
	printed := &Printed{}
	getenv := func(string) string { return "" }
	now := func() time.Time { return time.Unix(1_700_000_000, 0) }
	to := console.New(printed)
	to.Configure(console.Options{Now: now})
	return &session.Worker{
		Reader: load.Reader{Console: to, Getenv: getenv, Stdin: &bytes.Buffer{}},
		Edges: reconcile.Edges{
			Dial:   func(context.Context, string, string) (net.Conn, error) { return nil, errNoNetwork },
			Getenv: getenv, Now: now, UserAgent: "helmsrc/test",
		},
	}, printed
}

// Write writes files into a new directory, and returns its name.
func Write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Read reads manifests from a new directory with these files.
func Read(t *testing.T, w *session.Worker, o load.Options, files map[string]string) []*load.Input {
	t.Helper()
	o.Names, o.Recursive = []string{Write(t, files)}, true
	in, err := w.Inputs(t.Context(), &o)
	if err != nil {
		t.Fatal(err)
	}
	return in
}
