package bucket

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// googleWorld has a GCS server at gcs.test with the bucket charts.
type googleWorld struct {
	*bucketWorld
	gcs    *helmtest.GCS
	tokens *helmtest.Server
}

func newGoogleWorld(t *testing.T) *googleWorld {
	t.Helper()
	gcs, err := helmtest.StartGCS("http://token.test/token")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gcs.Close)
	w := &googleWorld{bucketWorld: &bucketWorld{World: fetchtest.NewWorld(t)}, gcs: gcs}
	w.server = w.Serve(t, "gcs.test:80", gcs.Handler)
	w.tokens = w.Serve(t, "token.test:80", gcs.Tokens)
	if err := gcs.MakeBucket("charts"); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *googleWorld) put(t *testing.T, key, content string) {
	t.Helper()
	if err := w.gcs.Put("charts", key, []byte(content)); err != nil {
		t.Fatal(err)
	}
}

func (w *googleWorld) login(t *testing.T, key []byte) *Login {
	t.Helper()
	read, err := auth.ReadGoogleKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return NewLogin(Keys{Google: read})
}

func (w *googleWorld) options(t *testing.T) Options {
	t.Helper()
	return Options{Provider: "gcp", Bucket: "charts", Endpoint: "gcs.test", Insecure: true, Login: w.login(t, w.gcs.Key)}
}

func TestGoogleBucket(t *testing.T) {
	w := newGoogleWorld(t)
	for key, content := range map[string]string{"a/Chart.yaml": "a", "a/b/ä +%?.yaml": "b", "x.txt": "x", "logs/1": "1", ".sourceignore": "*.txt"} {
		w.put(t, key, content)
	}
	o := w.options(t)
	o.pageKeys = 2
	got := w.mustGet(t, o)
	fetchtest.WantFiles(t, got, ".sourceignore=*.txt", "a/Chart.yaml=a", "a/b/ä +%?.yaml=b", "logs/1=1")
	if d, err := godigest.Parse(got.Revision); err != nil || d.Algorithm() != godigest.SHA256 || got.Files != 3 {
		t.Errorf("%s, %d files, %v", got.Revision, got.Files, err)
	}
	pages := 0
	for _, r := range w.server.Log.Drain() {
		if strings.HasPrefix(r.URI, "/storage/v1/b/charts/o?") {
			pages++
		}
	}
	if pages != 3 || len(w.gcs.Issued()) != 1 {
		t.Errorf("%d pages, %d tokens", pages, len(w.gcs.Issued()))
	}
	t.Run("unless", func(t *testing.T) {
		o := o
		o.Unless = got.Revision
		if again := w.mustGet(t, o); !again.Unchanged || again.Root != nil {
			t.Errorf("%+v", again)
		}
		for _, r := range w.server.Log.Drain() {
			if strings.Contains(r.URI, "Chart.yaml") {
				t.Errorf("%s", r)
			}
		}
	})
	t.Run("prefix and ignore", func(t *testing.T) {
		o := o
		o.Prefix, o.Ignore = "a/", "b/"
		fetchtest.WantFiles(t, w.mustGet(t, o), ".sourceignore=*.txt", "a/Chart.yaml=a")
	})
	t.Run("endpoint as a URL", func(t *testing.T) {
		o := o
		o.Endpoint, o.Insecure = "http://gcs.test", false
		w.mustGet(t, o)
	})
}

func TestGoogleBucketErrors(t *testing.T) {
	w := newGoogleWorld(t)
	w.put(t, "a", "1")
	for _, v := range []struct {
		name            string
		change          func(*Options)
		want, hint      string
		auth, transient bool
	}{
		{"no bucket", func(o *Options) { o.Bucket = "none" }, "bucket 'none' not found", "", false, false},
		{"unknown key", func(o *Options) { o.Login = w.login(t, w.gcs.Other) }, "failed to confirm existence of 'charts' bucket: failed to get an access token: ", "the service account may have been disabled, or its key removed", true, false},
		{"no key", func(o *Options) { o.Login = nil }, "failed to confirm existence of 'charts' bucket: googleapi: Error 401: Anonymous caller", "the bucket may require credentials: name a Secret with serviceaccount in spec.secretRef", true, false},
		{"identity of the machine elsewhere", func(o *Options) { o.Login, o.Ambient = nil, true }, "failed to confirm existence of 'charts' bucket: failed to get an access token: 'gcs.test' is not a host of the provider gcp", "", true, false},
		{"no host", func(o *Options) { o.Endpoint = "other.test" }, "failed to confirm existence of 'charts' bucket: ", "", false, true},
		{"no endpoint", func(o *Options) { o.Endpoint = "http://x/y" }, "failed to construct GCP client: endpoint 'http://x/y' is not the name of a host", "", false, false},
		{"scheme", func(o *Options) { o.Endpoint = "ftp://x" }, "failed to construct GCP client: scheme", "", false, false},
	} {
		t.Run(v.name, func(t *testing.T) {
			o := w.options(t)
			v.change(&o)
			_, err := w.get(t, o)
			if err == nil || !strings.HasPrefix(err.Error(), v.want) {
				t.Fatalf("error %v", err)
			}
			if fetch.AuthFailure(err) != v.auth || fetch.Transient(err) != v.transient {
				t.Errorf("auth %v, transient %v: %v", fetch.AuthFailure(err), fetch.Transient(err), err)
			}
			var hinted interface{ Hint() string }
			if v.hint != "" && (!errors.As(err, &hinted) || hinted.Hint() != v.hint) {
				t.Errorf("hint of %v", err)
			}
		})
	}
}

// The token goes to the bucket's host, not to where that one redirects.
func TestGoogleBucketRedirect(t *testing.T) {
	w := newGoogleWorld(t)
	other := w.Serve(t, "other.test:80", w.gcs.Handler)
	w.server.Use(http.RedirectHandler("http://other.test/storage/v1/b/charts", http.StatusTemporaryRedirect))
	if _, err := w.get(t, w.options(t)); err == nil || fetch.Transient(err) {
		t.Errorf("error %v", err)
	}
	if r := other.Log.All(); len(r) > 0 {
		t.Errorf("%s", r)
	}
}

func TestGoogleBucketChanges(t *testing.T) {
	w := newGoogleWorld(t)
	for _, key := range []string{"gone", "stays", "changes"} {
		w.put(t, key, "1")
	}
	before := w.mustGet(t, w.options(t)).Revision
	var done atomic.Bool
	w.server.Use(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.gcs.Handler.ServeHTTP(rw, r)
		if strings.HasSuffix(r.URL.Path, "/o") && done.CompareAndSwap(false, true) {
			if err := w.gcs.Remove("charts", "gone"); err != nil {
				t.Error(err)
			}
			w.put(t, "changes", "2")
		}
	}))
	got := w.mustGet(t, w.options(t))
	fetchtest.WantFiles(t, got, "changes=2", "stays=1")
	if got.Revision == before {
		t.Error("the revision is that of the listing")
	}
	o := w.options(t)
	o.Unless = got.Revision
	if again := w.mustGet(t, o); !again.Unchanged {
		t.Errorf("%+v", again)
	}
}

// A server that limits the rate sends the time until the next attempt.
func TestBucketRetryAfter(t *testing.T) {
	w := newGoogleWorld(t)
	w.put(t, "a", "1")
	var failures atomic.Int32
	w.server.Use(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if failures.Add(-1) >= 0 {
			rw.Header().Set("Retry-After", "7")
			rw.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.gcs.Handler.ServeHTTP(rw, r)
	}))
	failures.Store(2)
	fetchtest.WantFiles(t, w.mustGet(t, w.options(t)), "a=1")
	if want := []time.Duration{7 * time.Second, 7 * time.Second}; !slices.Equal(w.Delays, want) {
		t.Errorf("waits %v", w.Delays)
	}
}

// TestTokensPerHost downloads many buckets concurrently, each with its own key. All use one token server, which holds its
// answers back.
func TestTokensPerHost(t *testing.T) {
	w := newGoogleWorld(t)
	w.put(t, "a", "1")
	client := w.Client(t)
	var mu sync.Mutex
	now, most := 0, 0
	full, release := make(chan struct{}), make(chan struct{})
	filled := sync.OnceFunc(func() { close(full) })
	w.tokens.Use(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		if now == fetch.DefaultPerHost {
			filled()
		}
		mu.Unlock()
		<-release
		w.gcs.Tokens.ServeHTTP(rw, r)
		mu.Lock()
		now--
		mu.Unlock()
	}))
	other := w.Serve(t, "other.test:80", http.NotFoundHandler())
	var group sync.WaitGroup
	for range 3 * fetch.DefaultPerHost {
		o := w.options(t)
		o.TempDir = t.TempDir()
		group.Go(func() {
			tree, err := Download(t.Context(), client, o)
			if err != nil {
				t.Error(err)
				return
			}
			_ = tree.Close()
		})
	}
	<-full
	for range 20 { // the time in which more would have come to the token server
		o := w.options(t)
		o.Endpoint, o.Login = "other.test", nil
		if _, err := w.get(t, o); err == nil {
			t.Error("a bucket is at " + other.URL)
		}
	}
	close(release)
	group.Wait()
	if most != fetch.DefaultPerHost {
		t.Errorf("%d token requests at once", most)
	}
}
