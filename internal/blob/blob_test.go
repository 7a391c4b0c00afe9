package blob_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
)

// content returns a download of a text that counts its calls.
func content(text string, calls *atomic.Int64) blob.Get {
	return func(ctx context.Context, dst fetch.Sink, _ int64) error {
		calls.Add(1)
		fetch.Warn(ctx, errors.New("about "+text))
		_, err := io.WriteString(dst, text)
		return err
	}
}

func read(t *testing.T, b *blob.Blob) string {
	t.Helper()
	text, err := io.ReadAll(b.Section())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func closed(t *testing.T, p *blob.Pool) *blob.Pool {
	t.Helper()
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func in(dir string) func() (*blob.File, error) {
	return func() (*blob.File, error) { return blob.Create(dir) }
}

// TestGetOnce requests the same bytes several times at once: one caller downloads, all receive its warning.
func TestGetOnce(t *testing.T) {
	p := closed(t, blob.NewPool(0, nil, in(t.TempDir())))
	var calls, warnings atomic.Int64
	ctx := fetch.With(t.Context(), func(error) { warnings.Add(1) })
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			b, err := p.Get(ctx, blob.Key{Location: "here"}, 10, content("hello", &calls))
			if err != nil {
				t.Error(err)
				return
			}
			defer b.Release()
			if got := read(t, b); got != "hello" || b.Size() != 5 || b.Digest() != godigest.FromString("hello") {
				t.Errorf("got %q, %d bytes, %s", got, b.Size(), b.Digest())
			}
		})
	}
	group.Wait()
	if calls.Load() != 1 || warnings.Load() != 20 {
		t.Errorf("%d downloads, %d warnings", calls.Load(), warnings.Load())
	}
}

// TestKeys compares keys: different identities do not share bytes, even with one digest.
func TestKeys(t *testing.T) {
	p := closed(t, blob.NewPool(0, nil, in(t.TempDir())))
	var calls atomic.Int64
	d := godigest.FromString("hello")
	for i, key := range []blob.Key{{Location: "a"}, {Location: "b"}, {Location: "a", Identity: "bob"}, {Location: "a", Digest: d}, {Location: "a", Identity: "bob", Digest: d}} {
		for range 2 {
			if _, err := p.Get(t.Context(), key, 10, content("hello", &calls)); err != nil {
				t.Fatal(err)
			}
		}
		if calls.Load() != int64(i)+1 {
			t.Errorf("%+v: %d downloads", key, calls.Load())
		}
	}
}

// TestCached reads bytes from the cache in the next run, if they have a digest.
func TestCached(t *testing.T) {
	dir := t.TempDir()
	d := godigest.FromString("hello")
	scope := cache.Scope{Source: "here", Identity: "bob", Named: true}
	var calls atomic.Int64
	for range 2 {
		c, err := cache.Open(dir, cache.Options{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		p := closed(t, blob.NewPool(0, c, in(t.TempDir())))
		for _, key := range []blob.Key{{Location: "a", Digest: d, Scope: scope}, {Location: "b", Scope: scope}} {
			b, err := p.Get(t.Context(), key, 10, quiet("hello", &calls))
			if err != nil {
				t.Fatal(err)
			}
			if got := read(t, b); got != "hello" || b.Digest() != d {
				t.Errorf("got %q %s", got, b.Digest())
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if calls.Load() != 3 {
		t.Errorf("%d downloads, want 3: one with a digest, and one without in each run", calls.Load())
	}
}

// quiet is content without a warning.
func quiet(text string, calls *atomic.Int64) blob.Get {
	return func(_ context.Context, dst fetch.Sink, _ int64) error {
		calls.Add(1)
		_, err := io.WriteString(dst, text)
		return err
	}
}

// TestFailures verifies that a failure is returned to all later callers.
func TestFailures(t *testing.T) {
	p := closed(t, blob.NewPool(0, nil, in(t.TempDir())))
	var calls atomic.Int64
	down := errors.New("down")
	failing := func(context.Context, fetch.Sink, int64) error { calls.Add(1); return down }
	for range 2 {
		if _, err := p.Get(t.Context(), blob.Key{Location: "a"}, 10, failing); !errors.Is(err, down) {
			t.Errorf("got %v", err)
		}
	}
	if calls.Load() != 1 {
		t.Errorf("%d attempts", calls.Load())
	}
	var mismatch *digest.MismatchError
	wrong := blob.Key{Location: "a", Digest: godigest.FromString("other")}
	if _, err := p.Get(t.Context(), wrong, 10, content("hello", &calls)); !errors.As(err, &mismatch) {
		t.Errorf("got %v, want a mismatch", err)
	}
	wrong.Digest = godigest.SHA512.FromString("hello")
	if _, err := p.Get(t.Context(), wrong, 10, content("hello", &calls)); err != nil {
		t.Errorf("by another algorithm: %v", err)
	}
}

// TestGivenUp cancels the first of two callers: the second one downloads the bytes.
func TestGivenUp(t *testing.T) {
	p := closed(t, blob.NewPool(0, nil, in(t.TempDir())))
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	first := make(chan error)
	go func() {
		_, err := p.Get(ctx, blob.Key{Location: "a"}, 10, func(ctx context.Context, _ fetch.Sink, _ int64) error {
			close(started)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		first <- err
	}()
	<-started
	second := make(chan error)
	var calls atomic.Int64
	go func() {
		_, err := p.Get(t.Context(), blob.Key{Location: "a"}, 10, content("hello", &calls))
		second <- err
	}()
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first: %v", err)
	}
	if err := <-second; err != nil || calls.Load() != 1 {
		t.Errorf("the second: %v after %d downloads", err, calls.Load())
	}
}

// TestKept discards the least recently used blobs, but no blob in use.
func TestKept(t *testing.T) {
	p := closed(t, blob.NewPool(10, nil, in(t.TempDir())))
	var calls atomic.Int64
	get := func(location string) *blob.Blob {
		b, err := p.Get(t.Context(), blob.Key{Location: location}, 10, content("12345", &calls))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	used := get("used")
	for _, location := range []string{"a", "b", "c"} {
		get(location).Release()
	}
	if got := read(t, used); got != "12345" {
		t.Errorf("got %q", got)
	}
	before := calls.Load()
	get("c").Release()
	get("b").Release()
	get("used").Release()
	if calls.Load() != before {
		t.Errorf("%d downloads of what is kept", calls.Load()-before)
	}
	if get("a").Release(); calls.Load() != before+1 {
		t.Error("kept more than it may")
	}
	used.Release()
	used.Release() // a second call has no effect
}

type full struct{ bytes.Buffer }

func (*full) Reset() error { return nil }

func (*full) Write([]byte) (int, error) { return 0, errors.New("full") }

// TestWriteError distinguishes failures of this machine from those of a server.
func TestWriteError(t *testing.T) {
	p := closed(t, blob.NewPool(0, nil, in(t.TempDir())))
	var calls atomic.Int64
	b, err := p.Get(t.Context(), blob.Key{Location: "a"}, 10, content("hello", &calls))
	if err != nil {
		t.Fatal(err)
	}
	var local *blob.WriteError
	if err := b.CopyTo(new(full)); !errors.As(err, &local) {
		t.Errorf("got %v, want a WriteError", err)
	}
	nowhere := closed(t, blob.NewPool(0, nil, in(t.TempDir()+"/none")))
	if _, err := nowhere.Get(t.Context(), blob.Key{Location: "b"}, 10, content("hello", &calls)); !errors.As(err, &local) {
		t.Errorf("got %v, want a WriteError", err)
	}
}

// TestResetOfNothing resets an empty file after it was closed: a truncation would fail.
func TestResetOfNothing(t *testing.T) {
	f, err := blob.Create(t.TempDir())
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Reset(); err != nil {
		t.Errorf("an empty file is truncated: %v", err)
	}
}
