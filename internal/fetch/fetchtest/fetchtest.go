// Package fetchtest holds helpers for the tests of the packages below fetch: a network of real servers and a client that is
// limited to it.
package fetchtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// World is a network of real servers, a client that is limited to it, and the waits that the client would have made.
type World struct {
	*helmtest.Network
	Kit    *helmtest.Kit
	Config fetch.Config

	mu     sync.Mutex
	Delays []time.Duration
}

func NewWorld(t *testing.T) *World {
	t.Helper()
	kit, err := helmtest.NewKit()
	if err != nil {
		t.Fatal(err)
	}
	w := &World{Network: helmtest.NewNetwork(), Kit: kit}
	w.Config = fetch.Config{
		Dial:      w.Dial,
		UserAgent: "helmsrc-test",
		Retries:   3,
		Now:       time.Now,
		Rand:      func() float64 { return 1 },
		Sleep: func(_ context.Context, d time.Duration) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.Delays = append(w.Delays, d)
			return nil
		},
	}
	return w
}

// Client returns a client that is closed at the end of the test.
func (w *World) Client(t *testing.T) *fetch.Client {
	t.Helper()
	c := fetch.NewClient(w.Config)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func (w *World) Serve(t *testing.T, addr string, h http.Handler) *helmtest.Server {
	t.Helper()
	return w.ServeTLS(t, addr, nil, h)
}

func (w *World) ServeTLS(t *testing.T, addr string, config *tls.Config, h http.Handler) *helmtest.Server {
	t.Helper()
	s, err := helmtest.Serve(w.Network, addr, config, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (w *World) ServerTLS(t *testing.T, host string, mutual bool) *tls.Config {
	t.Helper()
	config, err := w.Kit.CA.ServerConfig(host, mutual)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// Identity returns the identity of a HelmRepository with these values in its Secrets.
func Identity(t *testing.T, secret, cert map[string][]byte) *auth.Identity {
	t.Helper()
	object := func(data map[string][]byte) *manifest.Secret {
		if data == nil {
			return nil
		}
		return &manifest.Secret{Namespace: "default", Name: "secret", Data: data}
	}
	id, _, err := auth.FromSecrets(object(secret), object(cert))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Buffer is a Sink that counts its attempts.
type Buffer struct {
	bytes.Buffer
	Resets int
}

func (b *Buffer) Reset() error {
	b.Resets++
	b.Buffer.Reset()
	return nil
}

// Files is a handler that serves each path with its content.
type Files map[string]string

func (f Files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, found := f[r.URL.Path]
	if !found {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write([]byte(content))
}

// Redirects is a handler that redirects each of its paths to another URL.
type Redirects map[string]string

func (r Redirects) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if to, found := r[req.URL.Path]; found {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
		return
	}
	_, _ = w.Write([]byte("end"))
}

func Status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// InTurn returns a handler that passes each request to the next of the handlers, and further requests to the last one.
func InTurn(handlers ...http.Handler) http.HandlerFunc {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := handlers[0]
		if len(handlers) > 1 {
			handlers = handlers[1:]
		}
		mu.Unlock()
		h.ServeHTTP(w, r)
	}
}

// WantError fails the test unless the error contains want, and shows no secret.
func WantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("got error %v\nwant %s", err, want)
	}
	WantNoCanary(t, err)
}

// WantNoCanary fails if a secret of the tests, which are all called canary, is visible in a value.
func WantNoCanary(t *testing.T, values ...any) {
	t.Helper()
	for _, value := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
			text := fmt.Sprintf(verb, value)
			for _, form := range []string{"canary", fmt.Sprintf("%x", "canary"), "Y2FuYXJ5"} {
				if strings.Contains(text, form) {
					t.Errorf(verb+" shows the secret: %s", value, text)
				}
			}
		}
	}
}

func HintOf(err error) string {
	for ; err != nil; err = unwrap(err) {
		if h, ok := err.(interface{ Hint() string }); ok && h.Hint() != "" {
			return h.Hint()
		}
	}
	return ""
}

func unwrap(err error) error {
	if u, ok := err.(interface{ Unwrap() error }); ok {
		return u.Unwrap()
	}
	return nil
}

// List returns the files of a tree with their contents, and an asterisk after the names of executables.
func List(t *testing.T, tree *fetch.Tree) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(tree.Root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := tree.Root.ReadFile(name)
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		if fi.Mode()&0o100 != 0 {
			name += "*"
		}
		files = append(files, name+"="+string(content))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func WantFiles(t *testing.T, tree *fetch.Tree, want ...string) {
	t.Helper()
	if got := List(t, tree); !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
}

// Short announces more bytes than it sends.
func Short(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "100")
	_, _ = w.Write([]byte("beginning"))
}
