package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// A pack that ends too early is a network failure, however it ends.
func TestGitCutShort(t *testing.T) {
	w := newGitWorld(t, "")
	commit(t, w.git, "first", map[string]string{"big": noise(1 << 20)})
	good, err := helmtest.GitHTTP(w.root, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, cut := range map[string]func(http.ResponseWriter, []byte){
		"in an orderly way": func(rw http.ResponseWriter, pack []byte) { _, _ = rw.Write(pack) },
		"abruptly": func(rw http.ResponseWriter, pack []byte) {
			_, _ = rw.Write(pack)
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			left := 2
			w.server.Use(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost {
					good.ServeHTTP(rw, r)
					return
				}
				ask, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(ask))
				if bytes.Contains(ask, []byte("ls-refs")) || left == 0 {
					good.ServeHTTP(rw, r)
					return
				}
				left--
				answer := httptest.NewRecorder()
				good.ServeHTTP(answer, r)
				rw.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
				cut(rw, answer.Body.Bytes()[:500_000])
			}))
			tree := w.mustClone(t, Options{Ref: Ref{Branch: "main"}})
			if left != 0 || tree.Files != 1 {
				t.Errorf("%d attempts left, %d files", left, tree.Files)
			}
		})
	}
}

// A silent server is waited for until the context ends.
func TestGitSilence(t *testing.T) {
	w := newGitWorld(t, "")
	s, _ := w.ssh(t, "ssh.test:22", true)
	silent, err := w.Listen("silent.test:22")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		c, err := silent.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		cancel(fetch.NewTimeout("--timeout", 1))
		_, _ = io.Copy(io.Discard, c)
	}()
	url := "ssh://silent.test/app.git"
	l := login(t, url, map[string]string{"identity": string(s.Identity), "known_hosts": string(s.KnownHosts)})
	_, err = Checkout(ctx, w.Client(t), Options{URL: url, Login: l, TempDir: t.TempDir()})
	if !errors.Is(err, context.DeadlineExceeded) || !fetch.Transient(err) {
		t.Errorf("error %v", err)
	}
}

// After a server closes the connection during the handshake, the request is retried.
func TestGitSSHGone(t *testing.T) {
	w := newGitWorld(t, "")
	s, _ := w.ssh(t, "ssh.test:22", true)
	l, err := w.Listen("gone.test:22")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	count := make(chan int, 1)
	count <- 0
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			count <- 1 + <-count
			_ = c.Close()
		}
	}()
	url := "ssh://gone.test/app.git"
	id := login(t, url, map[string]string{"identity": string(s.Identity), "known_hosts": string(s.KnownHosts)})
	_, err = w.clone(t, Options{URL: url, Login: id})
	if n := <-count; n != 4 || !fetch.Transient(err) {
		t.Errorf("error %v after %d attempts", err, n)
	}
}
