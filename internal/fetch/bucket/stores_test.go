package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// anyBucket is a bucket with some objects, of which two are ignored by the bucket itself.
type anyBucket struct {
	*bucketWorld
	options Options
	behind  http.Handler // of the server
}

// eachStore runs a test on every kind of object store.
func eachStore(t *testing.T, test func(t *testing.T, b *anyBucket)) {
	files := map[string]string{".sourceignore": "*.txt", "x.txt": "x", "sub/y.txt": "y", "app/Chart.yaml": "a", "app/values.yaml": "b"}
	t.Run("s3", func(t *testing.T) {
		w := newBucketWorld(t)
		for key, content := range files {
			w.put(t, key, content)
		}
		test(t, &anyBucket{w, w.options(t), w.s3.Handler})
	})
	t.Run("gcs", func(t *testing.T) {
		w := newGoogleWorld(t)
		for key, content := range files {
			w.put(t, key, content)
		}
		test(t, &anyBucket{w.bucketWorld, w.options(t), w.gcs.Handler})
	})
	t.Run("azure", func(t *testing.T) {
		w := newAzureWorld(t)
		for key, content := range files {
			w.azure.Put("charts", key, []byte(content))
		}
		test(t, &anyBucket{w.bucketWorld, w.options(t), w.azure})
	})
}

func TestBucketStores(t *testing.T) {
	eachStore(t, func(t *testing.T, b *anyBucket) {
		got := b.mustGet(t, b.options)
		fetchtest.WantFiles(t, got, ".sourceignore=*.txt", "app/Chart.yaml=a", "app/values.yaml=b")
		if got.Files != 2 {
			t.Errorf("%d files", got.Files)
		}
		for name, l := range map[string]tree.Limits{"total": {Total: 6}, "entries": {Entries: 1}} {
			o := b.options
			o.Limits = l
			if _, err := b.get(t, o); err == nil || fetch.Transient(err) || !strings.Contains(err.Error(), "larger than") {
				t.Errorf("%s: error %v", name, err)
			}
		}
	})
}

func TestBucketProxy(t *testing.T) {
	eachStore(t, func(t *testing.T, b *anyBucket) {
		p := b.Serve(t, "proxy.test:3128", helmtest.Proxy(b.Network, "u:pr0xy"))
		proxy, err := auth.NewProxy("default/proxy", map[string][]byte{
			"address": []byte("http://proxy.test:3128"), "username": []byte("u"), "password": []byte("pr0xy"),
		})
		if err != nil {
			t.Fatal(err)
		}
		o := b.options
		o.Proxy = proxy
		b.server.Log.Drain()
		b.mustGet(t, o)
		if direct, through := len(b.server.Log.Drain()), len(p.Log.Drain()); through < direct || direct == 0 {
			t.Errorf("%d requests, of which %d through the proxy", direct, through)
		}
		p.Close()
		_, err = b.get(t, o)
		if err == nil || !fetch.Transient(err) || strings.Contains(err.Error(), "pr0xy") {
			t.Errorf("error %v", err)
		}
	})
}

// spec.timeout ends a bucket that stops in the middle, and an object that never ends.
func TestBucketTimeout(t *testing.T) {
	eachStore(t, func(t *testing.T, b *anyBucket) {
		ctx, cancel := context.WithCancelCause(t.Context())
		b.server.Use(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "Chart.yaml") {
				b.behind.ServeHTTP(rw, r)
				return
			}
			fmt.Fprint(rw, "a")
			_ = http.NewResponseController(rw).Flush()
			cancel(fetch.NewTimeout("spec.timeout", time.Minute))
			<-r.Context().Done()
		}))
		o := b.options
		o.TempDir = t.TempDir()
		_, err := Download(ctx, b.Client(t), o)
		if !errors.Is(err, context.DeadlineExceeded) || !fetch.Transient(err) || !strings.Contains(err.Error(), "spec.timeout of 1m0s exceeded") {
			t.Errorf("error %v", err)
		}
	})
}

// A server's text is shown in one line, without the credentials of the request.
func TestBucketServersText(t *testing.T) {
	eachStore(t, func(t *testing.T, b *anyBucket) {
		b.server.Use(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			rw.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(rw, "you said %v\n%s", r.Header, strings.Repeat("and\x1b[31m more ", 10_000))
		}))
		_, err := b.get(t, b.options)
		if err == nil || !fetch.AuthFailure(err) || fetch.Transient(err) {
			t.Fatalf("error %v", err)
		}
		if text := err.Error(); len(text) > 1000 || strings.ContainsAny(text, "\n\x1b") || strings.Contains(text, "Bearer ya29") || strings.Contains(text, "Signature=") {
			t.Errorf("%q", text)
		}
	})
}
