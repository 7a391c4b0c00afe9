package helmrepo

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/index"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

const small = `apiVersion: v1
entries:
  foo:
  - apiVersion: v2
    name: foo
    version: 1.0.0
    urls:
    - foo-1.0.0.tgz
`

// candidates reads the one chart of a small index back.
func candidates(t *testing.T, text string, offsets *index.Offsets) []resolve.Candidate {
	t.Helper()
	list, _, err := index.Open(strings.NewReader(text), offsets).Candidates("foo")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestIndex(t *testing.T) {
	for _, tt := range []struct {
		name, url string
		handler   http.Handler
		want      string
	}{
		{"plain", "http://repo.test", fetchtest.Files{"/index.yaml": small}, "GET /index.yaml 200"},
		{"below a path, with a query", "http://repo.test/a//b/?x=y", fetchtest.Files{"/a/b/index.yaml": small}, "GET /a/b/index.yaml?x=y 200"},
		{"encoded path", "http://repo.test/next%2Fpath", fetchtest.Files{"/next/path/index.yaml": small}, "GET /next%2Fpath/index.yaml 200"},
		{"user in URL", "http://user:pw@repo.test/", fetchtest.Files{"/index.yaml": small}, "GET /index.yaml 200 Basic user:pw"},
		{"redirected", "http://repo.test/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/index.yaml" {
				http.Redirect(w, r, "/real", http.StatusMovedPermanently)
				return
			}
			_, _ = io.WriteString(w, small)
		}), "GET /index.yaml 301; GET /real 200"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := fetchtest.NewWorld(t)
			s := w.Serve(t, "repo.test:80", tt.handler)
			var dst fetchtest.Buffer
			offsets, _, err := repository(w, t, tt.url, nil, Options{}).Index(t.Context(), &dst, plenty, "")
			if err != nil || dst.String() != small || dst.Resets != 1 {
				t.Fatalf("got %q after %d resets, %v", &dst, dst.Resets, err)
			}
			if list := candidates(t, small, offsets); len(list) != 1 || list[0].Version != "1.0.0" {
				t.Errorf("got %+v", list)
			}
			if got := strings.Join(helmtest.Strings(s.Log.All()), "; "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			for _, r := range s.Log.All() {
				if r.Header.Get("User-Agent") != "helmsrc-test" || r.Header.Get("Accept-Encoding") != "" {
					t.Errorf("headers %v", r.Header)
				}
			}
		})
	}
}

// The statuses that every request may get, and their meanings.
func TestIndexStatuses(t *testing.T) {
	for _, tt := range []struct {
		code            int
		text            string
		transient, auth bool
	}{
		{201, "201 Created", false, false},
		{204, "204 No Content", false, false},
		{206, "206 Partial Content", false, false},
		{401, "401 Unauthorized", false, true},
		{403, "403 Forbidden", false, true},
		{404, "404 Not Found", false, false},
		{429, "429 Too Many Requests", true, false},
		{500, "500 Internal Server Error", true, false},
		{599, "599", false, false},
	} {
		w := fetchtest.NewWorld(t)
		w.Serve(t, "repo.test:80", fetchtest.Status(tt.code))
		_, _, err := repository(w, t, "http://repo.test/charts?token=canary", nil, Options{}).Index(t.Context(), new(fetchtest.Buffer), plenty, "")
		fetchtest.WantError(t, err, "failed to fetch http://repo.test/charts/index.yaml?token=REDACTED : "+tt.text)
		if fetch.Transient(err) != tt.transient || fetch.AuthFailure(err) != tt.auth {
			t.Errorf("%d: transient %v, auth %v", tt.code, fetch.Transient(err), fetch.AuthFailure(err))
		}
		if tt.code == 404 && fetchtest.HintOf(err) == "" {
			t.Error("no hint")
		}
	}
}

func TestIndexSize(t *testing.T) {
	limit := int64(len(small))
	long := small + "# 3456789\n"
	for _, length := range []bool{true, false} {
		w := fetchtest.NewWorld(t)
		content := small
		w.Serve(t, "repo.test:80", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if !length {
				_ = http.NewResponseController(w).Flush()
			}
			_, _ = io.WriteString(w, content)
		}))
		h := repository(w, t, "http://repo.test", nil, Options{})
		if _, _, err := h.Index(t.Context(), new(fetchtest.Buffer), limit, ""); err != nil {
			t.Error("exactly:", err)
		}
		content = long
		var dst fetchtest.Buffer
		_, _, err := h.Index(t.Context(), &dst, limit, "")
		fetchtest.WantError(t, err, fmt.Sprintf("index exceeds the maximum index file size of %d bytes", limit))
		var invalid *IndexError
		if fetch.Transient(err) || errors.As(err, &invalid) || int64(dst.Len()) > limit {
			t.Errorf("case 2: transient %v, %T, %d bytes", fetch.Transient(err), err, dst.Len())
		}
	}
}

func TestInvalidIndex(t *testing.T) {
	var compressed strings.Builder
	gz := gzip.NewWriter(&compressed)
	_, _ = io.WriteString(gz, small)
	_ = gz.Close()
	for _, tt := range []struct{ name, content, err, hint string }{
		{"case 3: no apiVersion", "entries: {}\n", "no API version specified", ""},
		{"case 4: duplicate key", "apiVersion: v1\nentries:\n  nginx: []\n  nginx: []\n", "nginx", ""},
		{"empty", "", "empty index.yaml file", ""},
		{"web page", "\n<!DOCTYPE html><html><head><title>Sign in</title></head><body>a: b</body></html>", "the answer is a web page, not an index", "spec.url"},
		{"compressed", compressed.String(), "the answer is a compressed file", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := fetchtest.NewWorld(t)
			s := w.Serve(t, "repo.test:80", fetchtest.Files{"/index.yaml": tt.content})
			var dst fetchtest.Buffer
			offsets, _, err := repository(w, t, "http://repo.test", nil, Options{}).Index(t.Context(), &dst, plenty, "")
			if err == nil && tt.hint == "" {
				// A single pass cannot find this.
				err = &IndexError{offsets.Check(strings.NewReader(dst.String()))}
			}
			fetchtest.WantError(t, err, tt.err)
			var invalid *IndexError
			if !errors.As(err, &invalid) || fetch.Transient(err) || len(s.Log.All()) != 1 {
				t.Errorf("%T, transient %v, %d requests", err, fetch.Transient(err), len(s.Log.All()))
			}
			if got := fetchtest.HintOf(invalid.Err); (got == "") != (tt.hint == "") || !strings.Contains(got, tt.hint) {
				t.Errorf("hint %q, want %q", got, tt.hint)
			}
		})
	}
}

// An index that is cut off looks like a broken one. It is the network's failure all the same.
func TestTruncatedIndex(t *testing.T) {
	for _, at := range []int{1, 20, 40, 60, len(small) - 1} {
		w := fetchtest.NewWorld(t)
		cut := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(small)))
			_, _ = io.WriteString(w, small[:at])
		})
		s := w.Serve(t, "repo.test:80", fetchtest.InTurn(cut, cut, fetchtest.Files{"/index.yaml": small}))
		h := repository(w, t, "http://repo.test", nil, Options{})
		var dst fetchtest.Buffer
		offsets, _, err := h.Index(t.Context(), &dst, plenty, "")
		if err != nil || dst.String() != small || dst.Resets != 3 || len(candidates(t, dst.String(), offsets)) != 1 {
			t.Errorf("cut at %d: got %q, %v", at, &dst, err)
		}
		s.Use(cut)
		_, _, err = h.Index(t.Context(), &dst, plenty, "")
		fetchtest.WantError(t, err, `Get "http://repo.test/index.yaml": unexpected EOF`)
		if !fetch.Transient(err) {
			t.Errorf("cut at %d: not transient", at)
		}
	}
}

func TestIndexWriteError(t *testing.T) {
	w := fetchtest.NewWorld(t)
	w.Serve(t, "repo.test:80", fetchtest.Files{"/index.yaml": small})
	_, _, err := repository(w, t, "http://repo.test", nil, Options{}).Index(t.Context(), new(fullDisk), plenty, "")
	fetchtest.WantError(t, err, "no space left on device")
	var invalid *IndexError
	if !errors.Is(err, errFull) || fetch.Transient(err) || errors.As(err, &invalid) {
		t.Errorf("%T, transient %v", err, fetch.Transient(err))
	}
}

// One repository's connections serve all its files, and are gone when the client is closed.
func TestConnectionsAreReusedAndClosed(t *testing.T) {
	w := fetchtest.NewWorld(t)
	remotes := make(chan string, 100)
	w.Serve(t, "repo.test:80", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		remotes <- r.RemoteAddr
		fetchtest.Files{"/index.yaml": small, "/foo-1.0.0.tgz": "archive"}.ServeHTTP(w, r)
	}))
	client := w.Client(t)
	for range 2 {
		h, err := Open(client, "http://repo.test", basic(t), Options{})
		if err != nil {
			t.Fatal(err)
		}
		offsets, _, err := h.Index(t.Context(), new(fetchtest.Buffer), plenty, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range candidates(t, small, offsets) {
			if err := h.Archive(t.Context(), c, new(fetchtest.Buffer), plenty); err != nil {
				t.Fatal(err)
			}
		}
		// Neither an error nor a redirect costs a connection.
		if err := h.Archive(t.Context(), candidate("missing"), new(fetchtest.Buffer), plenty); err == nil {
			t.Fatal("no error")
		}
	}
	client.CloseIdleConnections()
	close(remotes)
	var seen []string
	for remote := range remotes {
		seen = append(seen, remote)
	}
	if distinct := slices.Compact(seen); len(seen) != 6 || len(distinct) != 1 {
		t.Errorf("connections %v for %d requests", distinct, len(seen))
	}
}

func TestProtectedRepository(t *testing.T) {
	w := fetchtest.NewWorld(t)
	s := w.Serve(t, "repo.test:80", helmtest.BasicAuth("user:canary", fetchtest.Files{"/index.yaml": small}))
	index := func(id *auth.Identity) error {
		_, _, err := repository(w, t, s.URL, id, Options{}).Index(t.Context(), new(fetchtest.Buffer), plenty, "")
		return err
	}
	if err := index(basic(t)); err != nil {
		t.Error("case 7:", err)
	}
	if err := index(auth.NewBasic("user", "canary-wrong")); !fetch.AuthFailure(err) || fetch.Transient(err) {
		t.Errorf("case 7: a wrong password gives %v", err)
	}
	docker := &manifest.Secret{Namespace: "default", Name: "secret", Type: "kubernetes.io/dockerconfigjson", Data: map[string][]byte{
		".dockerconfigjson": []byte(`{"auths":{"repo.test":{"username":"user","password":"canary"}}}`),
		"username":          []byte("user"), "password": []byte("canary"),
	}}
	id, _, err := auth.FromSecrets(docker, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Log.Drain()
	if err := index(id); !fetch.AuthFailure(err) || helmtest.Strings(s.Log.Drain())[0] != "GET /index.yaml 401" {
		t.Errorf("case 8: %v", err)
	}
	s.Use(fetchtest.Files{"/index.yaml": small})
	if err := index(id); err != nil {
		t.Error("case 8:", err)
	}
}

// After an operation has ended, with any result, no part of it is still running.
func TestNothingGoesOn(t *testing.T) {
	w := fetchtest.NewWorld(t)
	var cancel context.CancelFunc
	for addr, handler := range map[string]http.Handler{
		"good.test:80":  fetchtest.Files{"/x": "archive"},
		"bad.test:80":   fetchtest.Status(404),
		"short.test:80": http.HandlerFunc(fetchtest.Short),
		"large.test:80": fetchtest.Files{"/x": strings.Repeat("x", plenty+1)},
		"loop.test:80":  fetchtest.Redirects{"/x": "/x"},
		"slow.test:80": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			cancel()
			<-r.Context().Done()
		}),
	} {
		w.Serve(t, addr, handler)
		var ctx context.Context
		ctx, cancel = context.WithCancel(t.Context())
		client := w.Client(t)
		h, err := Open(client, "http://"+addr, nil, Options{Timeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		_ = h.Archive(ctx, candidate("x"), new(fetchtest.Buffer), plenty)
		cancel()
		client.CloseIdleConnections()
	}
	for range 10_000 {
		if !strings.Contains(stacks(), "net/http.(*persistConn)") {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("connections are left:\n%s", stacks())
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// TestRefusedIndexOfSlowServer hangs if a refused index is downloaded to the end.
func TestRefusedIndexOfSlowServer(t *testing.T) {
	w := fetchtest.NewWorld(t)
	w.Serve(t, "repo.test:80", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "apiVersion: v1\nentries: {}\nentries: {}\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	h := repository(w, t, "http://repo.test", nil, Options{Timeout: time.Hour})
	_, _, err := h.Index(t.Context(), &fetchtest.Buffer{}, 1<<20, "")
	var invalid *IndexError
	if !errors.As(err, &invalid) {
		t.Errorf("got error %v, want an IndexError", err)
	}
}
