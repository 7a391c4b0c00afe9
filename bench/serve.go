//go:build bench

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	godigest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/helmtest/registry"
	"github.com/helmsrc/helmsrc/internal/helmtest/signing"
)

// serveCommand makes this program the server, in a separate process, so that its memory and its garbage collection do not
// affect the measuring process.
const serveCommand = "serve-for-bench"

// tagPage is the page size of the registry, regardless of the request.
const tagPage = 100

// ociChart is the chart with very many tags.
const ociChart = "many"

// signedChart is a chart with a signature, and keyFile has the key to verify it with.
const (
	signedChart = "signed"
	keyFile     = "cosign.pub"
)

// serve serves the data of a directory until stdin ends: repositories below /NAME/, the registry at /v2/, and the number
// of requests since the last question at /requests. Its first line on stdout is its address.
func serve(ctx context.Context, dir string) error {
	var s scale
	b, err := os.ReadFile(filepath.Join(dir, "scale.json"))
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return err
	}
	oci, signed, err := newRegistry(s.Tags)
	if err != nil {
		return err
	}
	defer registry.Cleanup()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := sign(dir, listener.Addr().String(), signed, oci); err != nil {
		return err
	}
	server := &http.Server{Handler: newHandler(dir, oci), ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	fmt.Println(listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// tagged adds an ETag with the time and size of each file, as common web servers do.
func tagged(dir string, files http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fi, err := os.Stat(filepath.Join(dir, filepath.FromSlash(path.Clean("/"+r.URL.Path)))); err == nil && fi.Mode().IsRegular() {
			w.Header().Set("ETag", fmt.Sprintf("\"%x-%x\"", fi.ModTime().UnixNano(), fi.Size()))
		}
		files.ServeHTTP(w, r)
	})
}

func newHandler(dir string, oci http.Handler) http.Handler {
	var requests atomic.Int64
	mux := http.NewServeMux()
	if git, err := helmtest.GitHTTP(dir, ""); err == nil { // where git is installed
		mux.Handle(gitPath, git)
	}
	mux.Handle("/", tagged(dir, http.FileServer(http.Dir(dir))))
	mux.Handle(slowly+"/", slow(tagged(dir, http.FileServer(http.Dir(dir)))))
	mux.Handle("/v2/", pages(oci))
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		mux.ServeHTTP(w, r)
	})
	outer := http.NewServeMux()
	outer.Handle("/", counted)
	outer.HandleFunc("/requests", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, requests.Swap(0)) })
	return outer
}

// pages limits the registry's pages of tags to a size that is common.
func pages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if filepath.Base(r.URL.Path) == "list" {
			q := r.URL.Query()
			q.Set("n", strconv.Itoa(tagPage))
			r.URL.RawQuery = q.Encode()
		}
		next.ServeHTTP(w, r)
	})
}

// newRegistry returns a registry with one chart under many tags, with the archive of the highest one, and one chart to be
// signed, whose digest it returns.
func newRegistry(tags int) (http.Handler, string, error) {
	r, err := registry.New(&helmtest.Config{})
	if err != nil {
		return nil, "", err
	}
	version := ociVersion(tags - 1)
	manifest, err := push(r, ociChart, version)
	for i := 0; i < tags-1 && err == nil; i++ {
		body := bytes.NewReader(manifest.Body.Bytes())
		_, err = ask(r, http.MethodPut, manifestsOf(ociChart)+ociVersion(i), manifest.Header().Get("Content-Type"), body)
	}
	if err != nil {
		return nil, "", err
	}
	signed, err := push(r, signedChart, version)
	if err != nil {
		return nil, "", err
	}
	return r.Handler, godigest.FromBytes(signed.Body.Bytes()).String(), nil
}

func manifestsOf(chart string) string { return "/v2/charts/" + chart + "/manifests/" }

// push publishes a chart, and returns the registry's answer to the request for its manifest.
func push(r *registry.Registry, chart, version string) (*httptest.ResponseRecorder, error) {
	c, archive, err := newArchive(chart, version)
	if err != nil {
		return nil, err
	}
	metadata, err := c.Metadata()
	if err != nil {
		return nil, err
	}
	err = r.Push(&helmtest.Published{
		Repository: "charts/" + chart, Metadata: *metadata, Archive: archive, Created: helmtest.Created, Tag: version,
	})
	if err != nil {
		return nil, err
	}
	return ask(r, http.MethodGet, manifestsOf(chart)+version, "", http.NoBody)
}

// sign signs a chart with a new key, as cosign does, and writes the public key into the directory of the data.
func sign(dir, addr, digest string, oci http.Handler) error {
	key, err := signing.NewKey("ecdsa")
	if err != nil {
		return err
	}
	err = key.Sign(signing.Target{Repository: addr + "/charts/" + signedChart, Digest: digest, Insecure: true, Transport: inProcess{oci}})
	return errors.Join(err, os.WriteFile(filepath.Join(dir, keyFile), key.Public, 0o600))
}

// inProcess sends requests to a handler without a connection.
type inProcess struct{ http.Handler }

func (h inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	answer := w.Result()
	answer.Request = r
	return answer, nil
}

// ask sends a request to a handler without a connection.
func ask(h http.Handler, method, path, contentType string, body io.Reader) (*httptest.ResponseRecorder, error) {
	r := httptest.NewRequest(method, path, body)
	r.Header.Set("Accept", ocispec.MediaTypeImageManifest)
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code/100 != 2 {
		return nil, fmt.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w, nil
}

func ociVersion(i int) string { return fmt.Sprintf("%d.%d.%d", i/1000, i/10%100, i%10) }

// server is the process of the server, seen from the measuring process.
type server struct {
	addr  string
	cmd   *exec.Cmd
	stdin io.Closer
	scale scale
	data  string // directory
}

func startServer(ctx context.Context, o *options, dir string) (*server, error) {
	data := filepath.Join(dir, "data")
	s := &server{scale: scaleOf(o), data: data}
	for _, size := range s.scale.Indexes {
		if err := writeRepository(filepath.Join(data, size.Name), size, s.scale.Many); err != nil {
			return nil, err
		}
	}
	if err := writeGit(data, o.smoke); err != nil {
		return nil, err
	}
	b, err := json.Marshal(s.scale)
	if err == nil {
		err = os.WriteFile(filepath.Join(data, "scale.json"), b, 0o600)
	}
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s.cmd = exec.CommandContext(ctx, self, serveCommand, data)
	s.cmd.Stderr = os.Stderr
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.stdin = stdin
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := fmt.Fscan(bufio.NewReader(stdout), &s.addr); err != nil {
		s.stop()
		return nil, fmt.Errorf("the server did not start: %w", err)
	}
	return s, nil
}

func (s *server) stop() {
	_ = s.stdin.Close()
	_ = s.cmd.Wait()
}

// requests returns the number of requests since the last call.
func (s *server) requests(ctx context.Context) (int, error) {
	u := url.URL{Scheme: "http", Host: s.addr, Path: "/requests"}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, err
	}
	answer, err := new(http.Transport).RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var n int
	_, err = fmt.Fscan(answer.Body, &n)
	return n, err
}
