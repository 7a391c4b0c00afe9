package helmtest_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// world starts a server for each top directory of an archive.
func world(t *testing.T, archive string) *helmtest.World {
	t.Helper()
	kit, err := helmtest.NewKit()
	if err != nil {
		t.Fatal(err)
	}
	w := helmtest.NewWorld(kit)
	t.Cleanup(w.Close)
	dir := unpack(t, archive)
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range names {
		if err := w.Start(d.Name(), filepath.Join(dir, d.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func unpack(t *testing.T, archive string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		file := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// client returns a client of the network, with the transport that configure changed.
func client(t *testing.T, w *helmtest.World, configure ...func(*http.Transport)) *http.Client {
	t.Helper()
	tr := &http.Transport{DialContext: w.Network.Dial, TLSClientConfig: &tls.Config{RootCAs: w.Kit.CA.Pool()}}
	for _, f := range configure {
		f(tr)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// get returns status and body, or the error of either.
func get(t *testing.T, c *http.Client, u string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

func TestRepository(t *testing.T) {
	w := world(t, `
-- repo/charts --
podinfo 6.5.0
podinfo 6.5.1+b1 created=2024-01-01T00:00:00Z digest=none url=sub/podinfo.tgz?x=1 # comment
helmchart 0.1.0
-- repo/own/Chart.yaml --
apiVersion: v2
name: own
version: 1.0.0
-- repo/static/page.html --
<html>
`)
	c := client(t, w)
	_, index, err := get(t, c, "http://repo.test/index.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"apiVersion: v1\n", "  podinfo:\n", "  own:\n", "- podinfo-6.5.0.tgz", "- sub/podinfo.tgz?x=1", "version: 6.5.1+b1"} {
		if !strings.Contains(index, want) {
			t.Errorf("index without %q:\n%s", want, index)
		}
	}
	for path, want := range map[string]int{
		"/podinfo-6.5.0.tgz": 200, "/sub/podinfo.tgz?x=1": 200, "/own-1.0.0.tgz": 200, "/static/page.html": 200,
		"/charts": 404, "/own/Chart.yaml": 404, "/nothing": 404,
	} {
		if code, _, err := get(t, c, "http://repo.test"+path); code != want || err != nil {
			t.Errorf("GET %s: %d, %v, want %d", path, code, err, want)
		}
	}
	if got := len(w.Servers["repo"].Log.Drain()); got != 8 {
		t.Errorf("%d requests noted, want 8", got)
	}
	if got := w.Servers["repo"].Log.Drain(); len(got) > 0 {
		t.Errorf("drained twice: %v", got)
	}
}

func TestAuthAndLog(t *testing.T) {
	w := world(t, `
-- repo/auth.json --
{"basic": "alice:s3cret-pa55"}
-- repo2/charts --
-- repo3/down --
`)
	c := client(t, w)
	_, _, _ = get(t, c, "http://repo.test/index.yaml")
	_, _, _ = get(t, c, "http://alice:s3cret-pa55@repo.test/index.yaml")
	want := []string{"GET /index.yaml 401", "GET /index.yaml 200 Basic alice:s3cret-pa55"}
	if got := helmtest.Strings(w.Servers["repo"].Log.All()); !slices.Equal(got, want) {
		t.Errorf("log %q, want %q", got, want)
	}
	canaries := w.Canaries()
	if leaks := w.Leaks(canaries); leaks != nil {
		t.Errorf("false alarm: %v", leaks)
	}
	_, _, _ = get(t, c, "http://alice:s3cret-pa55@repo2.test/index.yaml")
	_, _, _ = get(t, c, "http://repo2.test/index.yaml?token=s3cret-pa55")
	if leaks := w.Leaks(canaries); len(leaks) != 2 {
		t.Errorf("leaks %q, want 2", leaks)
	}
	if _, _, err := get(t, c, "http://repo3.test/"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("host that is down: %v", err)
	}
	if _, _, err := get(t, c, "http://repo.test:8080/"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("other port: %v", err)
	}
	if _, _, err := get(t, c, "http://example.org/"); !errors.As(err, new(*net.DNSError)) {
		t.Errorf("unknown host: %v", err)
	}
}

func TestNetworkInAnotherProcess(t *testing.T) {
	w := world(t, "-- repo/page --\nhello\n")
	n, err := helmtest.ParseNetwork(w.Network.String())
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, w, func(tr *http.Transport) { tr.DialContext = n.Dial })
	if code, _, err := get(t, c, "http://repo.test/page"); code != 200 || err != nil {
		t.Errorf("%d, %v", code, err)
	}
}

func TestReplaceStopStart(t *testing.T) {
	w := world(t, "-- repo/page --\none\n")
	c := client(t, w)
	if err := w.Replace("repo", unpack(t, "-- page --\ntwo\n")); err != nil {
		t.Fatal(err)
	}
	if _, body, _ := get(t, c, "http://repo.test/page"); body != "two\n" {
		t.Errorf("after Replace: %q", body)
	}
	w.Servers["repo"].Close()
	if _, _, err := get(t, c, "http://repo.test/page"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after Close: %v", err)
	}
	if err := w.Servers["repo"].Restart(); err != nil {
		t.Fatal(err)
	}
	if _, body, err := get(t, c, "http://repo.test/page"); body != "two\n" {
		t.Errorf("after Restart: %q, %v", body, err)
	}
}

func TestTLS(t *testing.T) {
	w := world(t, "-- repo/tls --\n-- repo/page --\nhi\n-- repo2/mtls --\n-- repo2/page --\nhi\n")
	if _, _, err := get(t, client(t, w), "https://repo.test/page"); err != nil {
		t.Errorf("server certificate: %v", err)
	}
	stranger := client(t, w, func(tr *http.Transport) { tr.TLSClientConfig = &tls.Config{RootCAs: w.Kit.Other.Pool()} })
	if _, _, err := get(t, stranger, "https://repo.test/page"); !errors.As(err, new(*tls.CertificateVerificationError)) {
		t.Errorf("unknown authority: %v", err)
	}
	if _, _, err := get(t, client(t, w), "https://repo2.test/page"); err == nil {
		t.Error("no client certificate was demanded")
	}
	with := func(p helmtest.Pair) *http.Client {
		cert, err := tls.X509KeyPair(p.Cert, p.Key)
		if err != nil {
			t.Fatal(err)
		}
		return client(t, w, func(tr *http.Transport) { tr.TLSClientConfig.Certificates = []tls.Certificate{cert} })
	}
	if _, _, err := get(t, with(w.Kit.Client), "https://repo2.test/page"); err != nil {
		t.Errorf("client certificate: %v", err)
	}
	if _, _, err := get(t, with(w.Kit.OtherClient), "https://repo2.test/page"); err == nil {
		t.Error("the client certificate of another authority was accepted")
	}
}

func TestProxy(t *testing.T) {
	w := world(t, `
-- proxy/auth.json --
{"basic": "pat:proxy-pa55"}
-- repo/page --
plain
-- repo2/tls --
-- repo2/page --
tls
`)
	via := func(u string) *http.Client {
		return client(t, w, func(tr *http.Transport) {
			tr.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(u) }
		})
	}
	c := via("http://pat:proxy-pa55@proxy.test:3128")
	for u, want := range map[string]string{"http://repo.test/page": "plain\n", "https://repo2.test/page": "tls\n"} {
		if _, body, err := get(t, c, u); body != want || err != nil {
			t.Errorf("%s: %q, %v", u, body, err)
		}
	}
	if code, _, _ := get(t, via("http://proxy.test:3128"), "http://repo.test/page"); code != 407 {
		t.Errorf("without credentials: %d", code)
	}
	got := helmtest.Strings(w.Servers["proxy"].Log.All())
	slices.Sort(got)
	want := []string{
		"CONNECT repo2.test:443 200 Basic pat:proxy-pa55",
		"GET http://repo.test/page 200 Basic pat:proxy-pa55",
		"GET http://repo.test/page 407",
	}
	if !slices.Equal(got, want) {
		t.Errorf("log %q, want %q", got, want)
	}
	if leaks := w.Leaks(w.Canaries()); leaks != nil {
		t.Errorf("false alarm: %q", leaks)
	}
}

func TestFaults(t *testing.T) {
	w := world(t, `
-- repo/page --
0123456789
-- repo/faults.json --
{
  "/twice": [{"status": 503, "body": "busy"}, {"status": 429, "header": {"Retry-After": "7"}}],
  "/204": {"status": 204},
  "HEAD /page": {"status": 405},
  "/page": [{"truncate": 4}, {"lie": 5}, {"flip": 0}, {"body": "<html>"}, {"size": 3}, {"reset": true}, {"stall": 2}, {"hang": true}, {"dribble": "1ms"}],
  "/endless": {"endless": true},
  "/deep/*": {"redirect": "http://repo2.test/x", "status": 307},
  "/loop": {"redirect": "/loop"}
}
-- repo/endless --
-- repo2/x --
moved
`)
	// On a connection that was used before, the client would retry after a reset.
	c := client(t, w, func(tr *http.Transport) { tr.DisableKeepAlives = true })
	check := func(path string, wantCode int, wantBody string, wantErr error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if wantErr == nil {
			ctx = t.Context()
		}
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://repo.test"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		code, body := 0, ""
		res, err := c.Do(req)
		if err == nil {
			b, readErr := io.ReadAll(io.LimitReader(res.Body, 1<<20))
			code, body, err = res.StatusCode, string(b), readErr
			res.Body.Close()
		}
		if code != wantCode || body != wantBody || !errors.Is(err, wantErr) {
			t.Errorf("%s: %d %q %v, want %d %q %v", path, code, body[:min(len(body), 20)], err, wantCode, wantBody[:min(len(wantBody), 20)], wantErr)
		}
	}
	check("/twice", 503, "busy", nil)
	check("/twice", 429, "", nil)
	check("/twice", 404, "not here\n", nil)
	check("/204", 204, "", nil)
	check("/page", 200, "0123", io.ErrUnexpectedEOF)
	check("/page", 200, "0123456789\n", io.ErrUnexpectedEOF)
	check("/page", 200, "\xcf123456789\n", nil)
	check("/page", 200, "<html>", nil)
	check("/page", 200, "\x00\x00\x00", nil)
	check("/page", 0, "", syscall.ECONNRESET)
	check("/page", 200, "01", context.DeadlineExceeded)
	check("/page", 0, "", context.DeadlineExceeded)
	check("/page", 200, "0123456789\n", nil)
	check("/page", 200, "0123456789\n", nil)
	check("/endless", 200, strings.Repeat("\x00", 1<<20), nil)
	check("/deep/er", 200, "moved\n", nil)
	if _, _, err := get(t, c, "http://repo.test/loop"); err == nil || !strings.Contains(err.Error(), "10 redirects") {
		t.Errorf("loop: %v", err)
	}
}

func TestAwait(t *testing.T) {
	w := world(t, "-- repo/page --\nhello\n")
	log := w.Servers["repo"].Log
	done := make(chan struct{})
	go func() {
		log.Await("GET", "/page")
		log.Await("GET", "/page?2")
		log.AwaitCount(3)
		close(done)
	}()
	c := client(t, w)
	for _, uri := range []string{"/page", "/page?2", "/page"} {
		select {
		case <-done:
			t.Error("did not wait")
		default:
		}
		if _, _, err := get(t, c, "http://repo.test"+uri); err != nil {
			t.Fatal(err)
		}
	}
	<-done
	if got := len(log.All()); got != 3 {
		t.Errorf("%d requests", got)
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	for name, archive := range map[string]string{
		"unknown fault":  "-- faults.json --\n{\"/\": {\"stauts\": 3}}\n",
		"unknown auth":   "-- auth.json --\n{\"basci\": \"\"}\n",
		"unknown option": "-- charts --\na 1.0.0 colour=red\n",
		"bad number":     "-- charts --\na 1.0.0 entries=red\n",
		"bad line":       "-- charts --\na\n",
	} {
		w := helmtest.NewWorld(nil)
		if err := w.Start("repo", unpack(t, archive)); err == nil {
			w.Close()
			t.Errorf("%s: no error", name)
		}
	}
}
