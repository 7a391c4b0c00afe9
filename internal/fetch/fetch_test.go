package fetch

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// world is a network of real servers, a client that knows no other, and the waits that the client would have made.
type world struct {
	*helmtest.Network
	kit    *helmtest.Kit
	config Config

	mu    sync.Mutex
	waits []time.Duration
}

func newWorld(t *testing.T) *world {
	t.Helper()
	kit, err := helmtest.NewKit()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Network: helmtest.NewNetwork(), kit: kit}
	w.config = Config{
		Dial:      w.Dial,
		UserAgent: "helmsrc-test",
		Retries:   3,
		Now:       time.Now,
		Rand:      func() float64 { return 1 },
		Sleep: func(_ context.Context, d time.Duration) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.waits = append(w.waits, d)
			return nil
		},
	}
	return w
}

// client is closed at the end of the test.
func (w *world) client(t *testing.T) *Client {
	t.Helper()
	c := NewClient(w.config)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func (w *world) repository(t *testing.T, base string, id *auth.Identity, o HTTPOptions) *HTTP {
	t.Helper()
	h, err := w.client(t).HTTP(base, id, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (w *world) serve(t *testing.T, addr string, h http.Handler) *helmtest.Server {
	t.Helper()
	return w.serveTLS(t, addr, nil, h)
}

func (w *world) serveTLS(t *testing.T, addr string, config *tls.Config, h http.Handler) *helmtest.Server {
	t.Helper()
	s, err := helmtest.Serve(w.Network, addr, config, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (w *world) serverTLS(t *testing.T, host string, mutual bool) *tls.Config {
	t.Helper()
	config, err := w.kit.CA.ServerConfig(host, mutual)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// identity is made as for a HelmRepository with these values in its Secrets.
func identity(t *testing.T, secret, cert map[string][]byte) *auth.Identity {
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

// buffer is a Sink that counts its attempts.
type buffer struct {
	bytes.Buffer
	resets int
}

func (b *buffer) Reset() error {
	b.resets++
	b.Buffer.Reset()
	return nil
}

// files serves each path with its content.
type files map[string]string

func (f files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, found := f[r.URL.Path]
	if !found {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write([]byte(content))
}

// redirects sends every path in it to another URL.
type redirects map[string]string

func (r redirects) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if to, found := r[req.URL.Path]; found {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
		return
	}
	_, _ = w.Write([]byte("end"))
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// inTurn gives each request the next handler, and the last one for ever.
func inTurn(handlers ...http.Handler) http.HandlerFunc {
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

// wantError fails the test unless the error says what it should and nothing that it should not.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("got error %v\nwant %s", err, want)
	}
	wantNoCanary(t, err)
}

// wantNoCanary fails if a secret of the tests, which are all called canary, is visible in a value.
func wantNoCanary(t *testing.T, values ...any) {
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

func hintOf(err error) string {
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
