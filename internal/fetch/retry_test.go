package fetch

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

func sha256Of(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// short promises more than it sends.
func short(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "100")
	_, _ = w.Write([]byte("beginning"))
}

// reset ends the connection without an answer.
func reset(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }

func get(t *testing.T, h *HTTP) (string, error) {
	t.Helper()
	var dst buffer
	err := h.Archive(t.Context(), candidate("x"), &dst, plenty)
	return dst.String(), err
}

func TestRetries(t *testing.T) {
	for _, tt := range []struct {
		name    string
		handler http.Handler
		retried bool
	}{
		{"408", status(408), true},
		{"425", status(425), true},
		{"429", status(429), true},
		{"500", status(500), true},
		{"502", status(502), true},
		{"503", status(503), true},
		{"504", status(504), true},
		{"short", http.HandlerFunc(short), true},
		{"reset", http.HandlerFunc(reset), true},
		{"refused", nil, true},
		{"400", status(400), false},
		{"401", status(401), false},
		{"403", status(403), false},
		{"404", status(404), false},
		{"409", status(409), false},
		{"501", status(501), false},
		{"505", status(505), false},
		{"204", status(204), false},
		{"206", status(206), false},
		{"300", status(300), false},
		{"304", status(304), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.Refuse("repo.test:81")
			var s *helmtest.Server
			if tt.handler != nil {
				s = w.serve(t, "repo.test:80", tt.handler)
			}
			_, err := get(t, w.repository(t, "http://repo.test", nil, HTTPOptions{}))
			if err == nil || Transient(err) != tt.retried {
				t.Errorf("transient %v: %v", Transient(err), err)
			}
			var waits []time.Duration
			if tt.retried {
				waits = []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}
			}
			if !slices.Equal(w.waits, waits) {
				t.Errorf("waited %v, want %v", w.waits, waits)
			}
			if s != nil && len(s.Log.All()) != len(waits)+1 {
				t.Errorf("%d attempts, want %d", len(s.Log.All()), len(waits)+1)
			}
		})
	}
}

func TestRetrySucceeds(t *testing.T) {
	w := newWorld(t)
	w.serve(t, "repo.test:80", inTurn(http.HandlerFunc(reset), http.HandlerFunc(short), status(502), files{"/x": "archive"}))
	if got, err := get(t, w.repository(t, "http://repo.test", nil, HTTPOptions{})); err != nil || got != "archive" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestBackoff(t *testing.T) {
	c := NewClient(Config{Rand: func() float64 { return 0.5 }})
	var got []time.Duration
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 63, 64, 1000} {
		got = append(got, c.backoff(n))
	}
	want := []time.Duration{250e6, 500e6, 1e9, 2e9, 4e9, 5e9, 5e9, 5e9, 5e9, 5e9}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	c = NewClient(Config{})
	if a := c.backoff(1); a < 0 || a >= backoffBase {
		t.Errorf("jitter out of range: %v", a)
	}
}

// limited answers 429 with this header, once.
// limited refuses one request. What it asks for is by its own clock, not by the test's.
func limited(retryAfter string, now time.Time) http.Handler {
	return inTurn(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", now.Format(http.TimeFormat))
		w.Header().Set("Retry-After", retryAfter)
		w.WriteHeader(http.StatusTooManyRequests)
	}), files{"/x": "archive"})
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
		{header: "Fri, 02 Jan 2026 03:04:04 GMT", want: backoffBase},
		{header: "0", want: backoffBase},
		{header: "-1", want: backoffBase},
		{header: "soon", want: backoffBase},
		{header: "120", left: time.Minute, err: "failed to fetch http://repo.test/x : 429 Too Many Requests: not tried again: the server asks to wait 2m0s, longer than the 1m0s that are left"},
		{header: "Fri, 02 Jan 2026 04:04:05 GMT", left: time.Minute, err: "wait 1h0m0s"},
		{header: "86400", err: "longer than the 10m0s that are left"},
		{header: "99999999999999999999", want: backoffBase},
	} {
		t.Run(tt.header, func(t *testing.T) {
			w := newWorld(t)
			w.serve(t, "repo.test:80", limited(tt.header, now))
			h := w.repository(t, "http://repo.test", nil, HTTPOptions{})
			ctx := t.Context()
			if tt.left > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tt.left)
				defer cancel()
			}
			var progress []Progress
			var dst buffer
			err := h.Archive(WithProgress(ctx, func(p Progress) { progress = append(progress, p) }), candidate("x"), &dst, plenty)
			if tt.err != "" {
				wantError(t, err, tt.err)
				if !Transient(err) || hintOf(err) == "" || len(w.waits) > 0 {
					t.Errorf("transient %v, hint %q, waits %v", Transient(err), hintOf(err), w.waits)
				}
				return
			}
			if err != nil || !slices.Equal(w.waits, []time.Duration{tt.want}) {
				t.Errorf("waited %v, want %v; %v", w.waits, tt.want, err)
			}
			if want := (Progress{Attempt: 1, Total: -1, Wait: tt.want, RateLimited: tt.want != backoffBase}); len(progress) == 0 || progress[0] != want {
				t.Errorf("told %+v, want %+v", progress, want)
			}
		})
	}
}

// A backoff that ends after the deadline is not worth waiting for, and the error is the server's.
func TestBackoffBeyondDeadline(t *testing.T) {
	w := newWorld(t)
	s := w.serve(t, "repo.test:80", status(503))
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	w.config.Retries = 10
	err := w.repository(t, "http://repo.test", nil, HTTPOptions{}).Archive(ctx, candidate("x"), new(buffer), plenty)
	wantError(t, err, "failed to fetch http://repo.test/x : 503 Service Unavailable")
	// No time passes while the test waits, so it is the fifth wait that is too long.
	want := []time.Duration{backoffBase, 2 * backoffBase, 4 * backoffBase, 8 * backoffBase}
	if len(s.Log.All()) != 5 || !slices.Equal(w.waits, want) {
		t.Errorf("%d requests, waits %v", len(s.Log.All()), w.waits)
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
		{&TimeoutError{"--timeout", time.Minute}, "--timeout of 1m0s exceeded, after: ", true},
	} {
		w := newWorld(t)
		w.serve(t, "repo.test:80", status(503))
		ctx, cancel := context.WithCancelCause(t.Context())
		w.config.Sleep = func(ctx context.Context, _ time.Duration) error {
			cancel(tt.cause)
			return sleep(ctx, time.Hour)
		}
		err := w.repository(t, "http://repo.test", nil, HTTPOptions{}).Archive(ctx, candidate("x"), new(buffer), plenty)
		wantError(t, err, tt.want)
		if Transient(err) != tt.transient || errors.Is(err, context.Canceled) == tt.transient {
			t.Errorf("%v: transient %v", tt.cause, Transient(err))
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
			w := newWorld(t)
			w.serve(t, "repo.test:80", handler)
			_, err := get(t, w.repository(t, "http://repo.test?canary", nil, HTTPOptions{Timeout: 50 * time.Millisecond}))
			wantError(t, err, `Get "http://repo.test/x?REDACTED": spec.timeout of 50ms exceeded`)
			if !Transient(err) || !errors.Is(err, context.DeadlineExceeded) || AuthFailure(err) {
				t.Errorf("transient %v: %v", Transient(err), err)
			}
		})
	}
}

// At most so many transfers of one host at the same time, and its waiting ones do not lose their own time.
func TestPerHostLimit(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	now, most := 0, 0
	full, release := make(chan struct{}), make(chan struct{})
	fill := sync.OnceFunc(func() { close(full) })
	s := w.serve(t, "repo.test:80", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		if now == DefaultPerHost {
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
	other := w.serve(t, "other.test:80", files{"/x": "archive"})
	client := w.client(t)
	var group sync.WaitGroup
	for range 3 * DefaultPerHost {
		group.Go(func() {
			// Two transports: the limit is the host's.
			h, err := client.HTTP(s.URL, nil, HTTPOptions{PassCredentials: true, Timeout: time.Hour})
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
	h, err := client.HTTP(other.URL, nil, HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, h); err != nil {
		t.Errorf("another host is held up: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h, _ = client.HTTP(s.URL, nil, HTTPOptions{})
	if err := h.Archive(ctx, candidate("x"), new(buffer), plenty); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting ignores the context: %v", err)
	}
	close(release)
	group.Wait()
	if most != DefaultPerHost || len(s.Log.All()) != 3*DefaultPerHost {
		t.Errorf("%d at the same time, %d in all", most, len(s.Log.All()))
	}
}

// Hosts that redirect to each other do not lock each other out, even with one place each.
func TestRedirectsDoNotDeadlock(t *testing.T) {
	w := newWorld(t)
	w.config.PerHost = 1
	w.serve(t, "a.test:80", redirects{"/x": "http://b.test/y"})
	w.serve(t, "b.test:80", redirects{"/x": "http://a.test/y"})
	client := w.client(t)
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			h, err := client.HTTP([]string{"http://a.test", "http://b.test"}[i%2], nil, HTTPOptions{})
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

// A slot is always that of the host it was last moved to, and of no other.
func TestSlotMoves(t *testing.T) {
	s := &slot{limit: newLimiter(2)}
	held := func() [2]int { return [2]int{len(s.limit.places("a")), len(s.limit.places("b"))} }
	for i, step := range []struct {
		do   func()
		want [2]int
	}{
		{func() {}, [2]int{0, 0}},
		{func() { _ = s.move(t.Context(), &url.URL{Host: "a"}) }, [2]int{1, 0}},
		{func() { _ = s.move(t.Context(), &url.URL{Host: "a"}) }, [2]int{1, 0}},
		{func() { _ = s.move(t.Context(), &url.URL{Host: "b"}) }, [2]int{0, 1}},
		{s.free, [2]int{0, 0}},
		{s.free, [2]int{0, 0}},
	} {
		if step.do(); held() != step.want {
			t.Errorf("step %d: %v, want %v", i, held(), step.want)
		}
	}
}
