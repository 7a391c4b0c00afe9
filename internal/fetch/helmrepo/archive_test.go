package helmrepo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

const plenty = 1 << 20

func candidate(urls ...string) resolve.Candidate {
	return resolve.Candidate{Name: "foo", Version: "1.0.0", URLs: urls}
}

func TestArchive(t *testing.T) {
	w := fetchtest.NewWorld(t)
	s := w.Serve(t, "repo.test:80", fetchtest.Files{"/charts/foo-1.0.0.tgz": "archive"})
	h := repository(w, t, "http://repo.test/?token=canary", nil, Options{})
	var dst fetchtest.Buffer
	if err := h.Archive(t.Context(), candidate("charts/foo-1.0.0.tgz"), &dst, plenty); err != nil {
		t.Fatal("case 24:", err)
	}
	if dst.String() != "archive" || dst.Resets != 1 {
		t.Errorf("got %q after %d resets", &dst, dst.Resets)
	}
	want := []string{"GET /charts/foo-1.0.0.tgz?token=canary 200"}
	if got := helmtest.Strings(s.Log.Drain()); !slices.Equal(got, want) {
		t.Errorf("case 24: got %q, want %q", got, want)
	}
	err := h.Archive(t.Context(), candidate("charts/bar.tgz"), &dst, plenty)
	fetchtest.WantError(t, err, "failed to fetch http://repo.test/charts/bar.tgz?token=REDACTED : 404 Not Found")
	if fetch.Transient(err) || fetch.AuthFailure(err) || dst.Len() > 0 {
		t.Errorf("transient %v, auth %v, %q left", fetch.Transient(err), fetch.AuthFailure(err), &dst)
	}
}

func TestArchiveURLs(t *testing.T) {
	w := fetchtest.NewWorld(t)
	h := repository(w, t, "http://repo.test/", nil, Options{})
	for _, tt := range []struct{ name, url, want string }{
		{"case 24: none", "", "chart 'foo' has no downloadable URLs"},
		{"scheme", "ftp://h/x?canary", `scheme "ftp" not supported`},
		{"no host", "https:foo.tgz?canary", "no host in URL"},
		{"secret", "https://u:canary@h:p/foo.tgz", "malformed user, password, host or port"},
		{"oci", "oci://u:canary@r/foo:1", "the archive is in an OCI registry: oci://u:REDACTED@r/foo:1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := candidate(tt.url)
			if tt.url == "" {
				c.URLs = nil
			}
			err := h.Archive(t.Context(), c, new(fetchtest.Buffer), plenty)
			fetchtest.WantError(t, err, tt.want)
			if fetch.Transient(err) {
				t.Error("transient")
			}
		})
	}
	var oci *OCIURLError
	err := h.Archive(t.Context(), candidate("oci://r/foo:1"), new(fetchtest.Buffer), plenty)
	if !errors.As(err, &oci) || oci.Reference() != "oci://r/foo:1" || fetchtest.HintOf(err) == "" {
		t.Errorf("got %#v", err)
	}
}

func TestArchiveTriesURLsInOrder(t *testing.T) {
	good := fetchtest.Files{"/foo.tgz": "archive"}
	for _, tt := range []struct {
		name    string
		first   http.Handler // nil: nothing listens
		want    int          // requests to the second host
		wantErr string
	}{
		{"404", fetchtest.Status(404), 1, ""},
		{"410", fetchtest.Status(410), 1, ""},
		{"500", fetchtest.Status(500), 1, ""},
		{"501", fetchtest.Status(501), 1, ""},
		{"503", fetchtest.Status(503), 1, ""},
		{"refused", nil, 1, ""},
		{"cut short", http.HandlerFunc(fetchtest.Short), 1, ""},
		{"401", fetchtest.Status(401), 0, "401 Unauthorized"},
		{"403", fetchtest.Status(403), 0, "403 Forbidden"},
		{"400", fetchtest.Status(400), 0, "400 Bad Request"},
		{"too large", fetchtest.Files{"/foo.tgz": strings.Repeat("x", plenty+1)}, 0, "bytes limit"},
		{"wrong digest", fetchtest.Files{"/foo.tgz": "other"}, 0, "computed digest"},
		{"good", good, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := fetchtest.NewWorld(t)
			w.Refuse("one.test:80")
			if tt.first != nil {
				w.Serve(t, "one.test:81", tt.first)
			}
			second := w.Serve(t, "two.test:80", good)
			c := candidate("http://one.test:81/foo.tgz", "http://two.test/foo.tgz")
			c.Digest = digest.Digest("sha256:" + sha256Of("archive")).String()
			var dst fetchtest.Buffer
			err := repository(w, t, "http://repo.test", nil, Options{}).Archive(t.Context(), c, &dst, plenty)
			if tt.wantErr != "" {
				fetchtest.WantError(t, err, tt.wantErr)
			} else if err != nil || dst.String() != "archive" {
				t.Errorf("got %q, %v", &dst, err)
			}
			if got := len(second.Log.All()); got != tt.want {
				t.Errorf("%d requests to the second host, want %d", got, tt.want)
			}
			if len(w.Delays) > 0 {
				t.Errorf("waited %v with another URL available", w.Delays)
			}
		})
	}
}

// After a round without success only the URLs that may recover are tried again.
func TestArchiveRounds(t *testing.T) {
	w := fetchtest.NewWorld(t)
	gone := w.Serve(t, "gone.test:80", fetchtest.Status(404))
	busy := w.Serve(t, "busy.test:80", fetchtest.InTurn(fetchtest.Status(503), fetchtest.Status(503), fetchtest.Files{"/x": "archive"}))
	var dst fetchtest.Buffer
	h := repository(w, t, "http://repo.test", nil, Options{})
	if err := h.Archive(t.Context(), candidate("http://gone.test/x", "http://busy.test/x"), &dst, plenty); err != nil {
		t.Fatal(err)
	}
	if a, b := len(gone.Log.All()), len(busy.Log.All()); a != 1 || b != 3 || dst.String() != "archive" {
		t.Errorf("%d and %d requests for %q", a, b, &dst)
	}

	busy.Use(fetchtest.Status(503))
	err := h.Archive(t.Context(), candidate("http://gone.test/x", "http://busy.test/x"), &dst, plenty)
	fetchtest.WantError(t, err, "failed to fetch http://gone.test/x : 404 Not Found; failed to fetch http://busy.test/x : 503 Service Unavailable")
	if !fetch.Transient(err) {
		t.Error("not transient although one of the URLs may come back")
	}
	busy.Use(fetchtest.Status(401))
	err = h.Archive(t.Context(), candidate("http://gone.test/x", "http://busy.test/x"), &dst, plenty)
	if fetch.Transient(err) || !errors.As(err, new(*fetch.StatusError)) {
		t.Errorf("transient: %v", err)
	}
}

func TestArchiveDigest(t *testing.T) {
	w := fetchtest.NewWorld(t)
	s := w.Serve(t, "repo.test:80", fetchtest.Files{"/foo-1.0.0.tgz": "archive"})
	right, wrong := sha256Of("archive"), sha256Of("other")
	for _, tt := range []struct {
		name, digest  string
		policy        fetch.DigestPolicy
		warning, fail string
	}{
		{name: "none"},
		{name: "hex", digest: right},
		{name: "prefixed", digest: "sha256:" + right},
		{name: "upper case", digest: strings.ToUpper(right)},
		{name: "wrong", digest: wrong, fail: "archive 'foo-1.0.0.tgz' does not have the digest in the index: computed digest doesn't match 'sha256:" + wrong + "': got 'sha256:" + right + "'"},
		{name: "wrong, warn", digest: wrong, policy: fetch.DigestWarn, warning: "does not have the digest in the index"},
		{name: "wrong, ignore", digest: wrong, policy: fetch.DigestIgnore},
		{name: "right, warn", digest: right, policy: fetch.DigestWarn},
		{name: "malformed", digest: "123e4", warning: "archive of chart 'foo' 1.0.0 is not checked against the index: malformed digest"},
		{name: "malformed, ignore", digest: "123e4", policy: fetch.DigestIgnore},
		{name: "other algorithm", digest: "md5:d41d8cd98f00b204e9800998ecf8427e", warning: "malformed digest"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var warnings []string
			ctx := fetch.With(t.Context(), func(w error) { warnings = append(warnings, w.Error()) })
			c := candidate("foo-1.0.0.tgz")
			c.Digest = tt.digest
			var dst fetchtest.Buffer
			err := repository(w, t, "http://repo.test", nil, Options{Digests: tt.policy}).Archive(ctx, c, &dst, plenty)
			if tt.fail != "" {
				fetchtest.WantError(t, err, tt.fail)
				var mismatch *digest.MismatchError
				var integrity interface{ Integrity() bool }
				if !errors.As(err, &mismatch) || !errors.As(err, &integrity) || !integrity.Integrity() || fetch.Transient(err) {
					t.Errorf("%T is not what the exit code needs", err)
				}
			} else if err != nil || dst.String() != "archive" {
				t.Errorf("got %q, %v", &dst, err)
			}
			if len(s.Log.Drain()) != 1 {
				t.Error("asked more than once")
			}
			if text := strings.Join(warnings, "\n"); len(warnings) > 1 || (text == "") != (tt.warning == "") || !strings.Contains(text, tt.warning) {
				t.Errorf("got warnings %q, want %q", warnings, tt.warning)
			}
		})
	}
}

// A malformed digest leads to a single warning, for any number of requests for the archive.
func TestArchiveWarnsOnce(t *testing.T) {
	w := fetchtest.NewWorld(t)
	w.Serve(t, "repo.test:80", fetchtest.InTurn(fetchtest.Status(503), fetchtest.Status(503), fetchtest.Files{"/foo.tgz": "archive"}))
	c := candidate("foo.tgz")
	c.Digest = "bad"
	warnings := 0
	ctx := fetch.With(t.Context(), func(error) { warnings++ })
	if err := repository(w, t, "http://repo.test", nil, Options{}).Archive(ctx, c, new(fetchtest.Buffer), plenty); err != nil || warnings != 1 {
		t.Errorf("%d warnings, %v", warnings, err)
	}
}

func TestArchiveSize(t *testing.T) {
	endless := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<10)); err != nil {
				return
			}
		}
	})
	exactly := fetchtest.Files{"/foo.tgz": strings.Repeat("x", 1000)}
	chunked := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		exactly.ServeHTTP(w, r)
	})
	large := fetchtest.Files{"/foo.tgz": strings.Repeat("x", 1<<20)}
	for _, tt := range []struct {
		name    string
		handler http.Handler
		limit   int64
		fails   bool
	}{
		{"exactly", exactly, 1000, false},
		{"one more", exactly, 999, true},
		{"exactly, length unknown", chunked, 1000, false},
		{"one more, length unknown", chunked, 999, true},
		{"much more", large, 1 << 19, true},
		{"endless", endless, 1 << 20, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := fetchtest.NewWorld(t)
			s := w.Serve(t, "repo.test:80", tt.handler)
			var dst fetchtest.Buffer
			err := repository(w, t, "http://repo.test", nil, Options{}).Archive(t.Context(), candidate("foo.tgz"), &dst, tt.limit)
			if tt.fails {
				fetchtest.WantError(t, err, fmt.Sprintf("size of chart 'foo.tgz' exceeds '%d' bytes limit", tt.limit))
			} else if err != nil {
				t.Error(err)
			}
			if len(s.Log.All()) != 1 || int64(dst.Len()) > tt.limit {
				t.Errorf("%d requests, %d bytes", len(s.Log.All()), dst.Len())
			}
			if tt.name == "much more" && dst.Len() > 0 {
				t.Errorf("read %d bytes of what the server said to be too large", dst.Len())
			}
		})
	}
}

type fullDisk struct{ fetchtest.Buffer }

var errFull = errors.New("no space left on device")

func (*fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestArchiveWriteError(t *testing.T) {
	w := fetchtest.NewWorld(t)
	s := w.Serve(t, "repo.test:80", fetchtest.Files{"/foo.tgz": "archive"})
	h := repository(w, t, "http://repo.test", nil, Options{})
	err := h.Archive(t.Context(), candidate("foo.tgz"), new(fullDisk), plenty)
	fetchtest.WantError(t, err, "no space left on device")
	if !errors.Is(err, errFull) || fetch.Transient(err) || len(s.Log.All()) != 1 {
		t.Errorf("transient %v, %d requests", fetch.Transient(err), len(s.Log.All()))
	}
}

func TestProgress(t *testing.T) {
	w := fetchtest.NewWorld(t)
	w.Serve(t, "repo.test:80", fetchtest.InTurn(fetchtest.Status(503), fetchtest.Files{"/foo.tgz": "archive"}))
	var got []fetch.Progress
	ctx := fetch.With(t.Context(), func(p fetch.Progress) { got = append(got, p) })
	if err := repository(w, t, "http://repo.test", nil, Options{}).Archive(ctx, candidate("foo.tgz"), new(fetchtest.Buffer), plenty); err != nil {
		t.Fatal(err)
	}
	want := []fetch.Progress{{Total: -1, Wait: firstWait}, {Read: 7, Total: 7}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestArchiveInterrupted(t *testing.T) {
	w := fetchtest.NewWorld(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	w.Serve(t, "repo.test:80", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("beginning"))
		_ = http.NewResponseController(w).Flush()
		cancel(errors.New("interrupted by the user"))
		<-r.Context().Done()
	}))
	err := repository(w, t, "http://repo.test", nil, Options{}).Archive(ctx, candidate("foo.tgz"), new(fetchtest.Buffer), plenty)
	fetchtest.WantError(t, err, `Get "http://repo.test/foo.tgz": interrupted by the user`)
	if fetch.Transient(err) || !errors.Is(err, context.Canceled) || len(w.Delays) > 0 {
		t.Errorf("transient %v, canceled %v, waits %v", fetch.Transient(err), errors.Is(err, context.Canceled), w.Delays)
	}
}
