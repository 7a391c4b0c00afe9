package helmrepo

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

func sha256Of(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// reset ends the connection without an answer.
func reset(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }

func get(t *testing.T, h *Repository) (string, error) {
	t.Helper()
	var dst fetchtest.Buffer
	err := h.Archive(t.Context(), candidate("x"), &dst, plenty)
	return dst.String(), err
}

func TestRetries(t *testing.T) {
	for _, tt := range []struct {
		name    string
		handler http.Handler
		retried bool
	}{
		{"408", fetchtest.Status(408), true},
		{"425", fetchtest.Status(425), true},
		{"429", fetchtest.Status(429), true},
		{"500", fetchtest.Status(500), true},
		{"502", fetchtest.Status(502), true},
		{"503", fetchtest.Status(503), true},
		{"504", fetchtest.Status(504), true},
		{"short", http.HandlerFunc(fetchtest.Short), true},
		{"reset", http.HandlerFunc(reset), true},
		{"refused", nil, true},
		{"400", fetchtest.Status(400), false},
		{"401", fetchtest.Status(401), false},
		{"403", fetchtest.Status(403), false},
		{"404", fetchtest.Status(404), false},
		{"409", fetchtest.Status(409), false},
		{"501", fetchtest.Status(501), false},
		{"505", fetchtest.Status(505), false},
		{"204", fetchtest.Status(204), false},
		{"206", fetchtest.Status(206), false},
		{"300", fetchtest.Status(300), false},
		{"304", fetchtest.Status(304), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := fetchtest.NewWorld(t)
			w.Refuse("repo.test:81")
			var s *helmtest.Server
			if tt.handler != nil {
				s = w.Serve(t, "repo.test:80", tt.handler)
			}
			_, err := get(t, repository(w, t, "http://repo.test", nil, Options{}))
			if err == nil || fetch.Transient(err) != tt.retried {
				t.Errorf("transient %v: %v", fetch.Transient(err), err)
			}
			var delays []time.Duration
			if tt.retried {
				delays = []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}
			}
			if !slices.Equal(w.Delays, delays) {
				t.Errorf("waited %v, want %v", w.Delays, delays)
			}
			if s != nil && len(s.Log.All()) != len(delays)+1 {
				t.Errorf("%d attempts, want %d", len(s.Log.All()), len(delays)+1)
			}
		})
	}
}

func TestRetrySucceeds(t *testing.T) {
	w := fetchtest.NewWorld(t)
	w.Serve(t, "repo.test:80", fetchtest.InTurn(http.HandlerFunc(reset), http.HandlerFunc(fetchtest.Short), fetchtest.Status(502), fetchtest.Files{"/x": "archive"}))
	if got, err := get(t, repository(w, t, "http://repo.test", nil, Options{})); err != nil || got != "archive" {
		t.Errorf("got %q, %v", got, err)
	}
}

// firstWait is how long a client waits after the first failure, with the jitter of these tests.
const firstWait = 500 * time.Millisecond

// limited answers the first request with 429 and this header. The header is by the server's clock, not by the test's.
func limited(retryAfter string, now time.Time) http.Handler {
	return fetchtest.InTurn(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", now.Format(http.TimeFormat))
		w.Header().Set("Retry-After", retryAfter)
		w.WriteHeader(http.StatusTooManyRequests)
	}), fetchtest.Files{"/x": "archive"})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		header string
		left   time.Duration // 0: no deadline
		want   time.Duration // the wait; 0: it fails at once
		err    string
	}{
		{header: "7", want: 7 * time.Second},
		{header: "30", left: time.Minute, want: 30 * time.Second},
		{header: "Fri, 02 Jan 2026 03:04:25 GMT", want: 20 * time.Second},
		{header: "Fri, 02 Jan 2026 03:04:04 GMT", want: firstWait},
		{header: "0", want: firstWait},
		{header: "-1", want: firstWait},
		{header: "soon", want: firstWait},
		{header: "120", left: time.Minute, err: "failed to fetch http://repo.test/x : 429 Too Many Requests: not tried again: the server asks to wait 2m0s, longer than the 1m0s that are left"},
		{header: "Fri, 02 Jan 2026 04:04:05 GMT", left: time.Minute, err: "wait 1h0m0s"},
		{header: "86400", err: "longer than the 10m0s that are left"},
		{header: "99999999999999999999", want: firstWait},
	} {
		t.Run(tt.header, func(t *testing.T) {
			w := fetchtest.NewWorld(t)
			w.Serve(t, "repo.test:80", limited(tt.header, now))
			h := repository(w, t, "http://repo.test", nil, Options{})
			ctx := t.Context()
			if tt.left > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tt.left)
				defer cancel()
			}
			var progress []fetch.Progress
			var dst fetchtest.Buffer
			err := h.Archive(fetch.With(ctx, func(p fetch.Progress) { progress = append(progress, p) }), candidate("x"), &dst, plenty)
			if tt.err != "" {
				fetchtest.WantError(t, err, tt.err)
				if !fetch.Transient(err) || fetchtest.HintOf(err) == "" || len(w.Delays) > 0 {
					t.Errorf("transient %v, hint %q, waits %v", fetch.Transient(err), fetchtest.HintOf(err), w.Delays)
				}
				return
			}
			if err != nil || !slices.Equal(w.Delays, []time.Duration{tt.want}) {
				t.Errorf("waited %v, want %v; %v", w.Delays, tt.want, err)
			}
			if want := (fetch.Progress{Total: -1, Wait: tt.want, RateLimited: tt.want != firstWait}); len(progress) == 0 || progress[0] != want {
				t.Errorf("reported %+v, want %+v", progress, want)
			}
		})
	}
}

// A backoff that ends after the deadline is not worth waiting for, and the error is the server's.
func TestBackoffBeyondDeadline(t *testing.T) {
	w := fetchtest.NewWorld(t)
	s := w.Serve(t, "repo.test:80", fetchtest.Status(503))
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	w.Config.Retries = 10
	err := repository(w, t, "http://repo.test", nil, Options{}).Archive(ctx, candidate("x"), new(fetchtest.Buffer), plenty)
	fetchtest.WantError(t, err, "failed to fetch http://repo.test/x : 503 Service Unavailable")
	// No time passes while the test waits, so it is the fifth wait that is too long.
	want := []time.Duration{firstWait, 2 * firstWait, 4 * firstWait, 8 * firstWait}
	if len(s.Log.All()) != 5 || !slices.Equal(w.Delays, want) {
		t.Errorf("%d requests, waits %v", len(s.Log.All()), w.Delays)
	}
}

func TestInterruptedWait(t *testing.T) {
	for _, tt := range []struct {
		cause     error
		want      string
		transient bool
	}{
		{context.Canceled, "context canceled, after: failed to fetch http://repo.test/x : 503", false},
		{errors.New("interrupted"), "interrupted, after: ", false},
		{fetch.NewTimeout("--timeout", time.Minute), "--timeout of 1m0s exceeded, after: ", true},
	} {
		w := fetchtest.NewWorld(t)
		w.Serve(t, "repo.test:80", fetchtest.Status(503))
		ctx, cancel := context.WithCancelCause(t.Context())
		w.Config.Sleep = func(ctx context.Context, _ time.Duration) error {
			cancel(tt.cause)
			<-ctx.Done()
			return context.Cause(ctx)
		}
		err := repository(w, t, "http://repo.test", nil, Options{}).Archive(ctx, candidate("x"), new(fetchtest.Buffer), plenty)
		fetchtest.WantError(t, err, tt.want)
		if fetch.Transient(err) != tt.transient || errors.Is(err, context.Canceled) == tt.transient {
			t.Errorf("%v: transient %v", tt.cause, fetch.Transient(err))
		}
	}
}

func TestTimeout(t *testing.T) {
	hang := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("x"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	for name, handler := range map[string]http.Handler{"no answer": hang, "slow body": slow} {
		t.Run(name, func(t *testing.T) {
			w := fetchtest.NewWorld(t)
			w.Serve(t, "repo.test:80", handler)
			_, err := get(t, repository(w, t, "http://repo.test?canary", nil, Options{Timeout: 50 * time.Millisecond}))
			fetchtest.WantError(t, err, `Get "http://repo.test/x?REDACTED": spec.timeout of 50ms exceeded`)
			if !fetch.Transient(err) || !errors.Is(err, context.DeadlineExceeded) || fetch.AuthFailure(err) {
				t.Errorf("transient %v: %v", fetch.Transient(err), err)
			}
		})
	}
}

// The transfers of one host are limited, and the waiting ones do not lose their own time.
func TestPerHostLimit(t *testing.T) {
	w := fetchtest.NewWorld(t)
	var mu sync.Mutex
	now, most := 0, 0
	full, release := make(chan struct{}), make(chan struct{})
	fill := sync.OnceFunc(func() { close(full) })
	s := w.Serve(t, "repo.test:80", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		if now == fetch.DefaultPerHost {
			fill()
		}
		mu.Unlock()
		_, _ = rw.Write([]byte("archive"))
		_ = http.NewResponseController(rw).Flush()
		<-release
		mu.Lock()
		now--
		mu.Unlock()
	}))
	other := w.Serve(t, "other.test:80", fetchtest.Files{"/x": "archive"})
	client := w.Client(t)
	var group sync.WaitGroup
	for range 3 * fetch.DefaultPerHost {
		group.Go(func() {
			// Two transports: the limit is the host's.
			h, err := Open(client, s.URL, nil, Options{PassCredentials: true, Timeout: time.Hour})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := get(t, h); err != nil {
				t.Error(err)
			}
		})
	}
	<-full
	h, err := Open(client, other.URL, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, h); err != nil {
		t.Errorf("another host is held up: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h, _ = Open(client, s.URL, nil, Options{})
	if err := h.Archive(ctx, candidate("x"), new(fetchtest.Buffer), plenty); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting ignores the context: %v", err)
	}
	close(release)
	group.Wait()
	if most != fetch.DefaultPerHost || len(s.Log.All()) != 3*fetch.DefaultPerHost {
		t.Errorf("%d at the same time, %d in all", most, len(s.Log.All()))
	}
}

// Hosts that redirect to each other do not lock each other out, even with one place each.
func TestRedirectsDoNotDeadlock(t *testing.T) {
	w := fetchtest.NewWorld(t)
	w.Config.PerHost = 1
	w.Serve(t, "a.test:80", fetchtest.Redirects{"/x": "http://b.test/y"})
	w.Serve(t, "b.test:80", fetchtest.Redirects{"/x": "http://a.test/y"})
	client := w.Client(t)
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			h, err := Open(client, []string{"http://a.test", "http://b.test"}[i%2], nil, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if got, err := get(t, h); err != nil || got != "end" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	group.Wait()
}
