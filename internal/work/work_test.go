package work

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestMemoFailure: an error is kept like a result, and belongs only to its key.
func TestMemoFailure(t *testing.T) {
	var m Memo[string, int]
	dead := errors.New("server is dead")
	calls := 0
	for range 3 {
		_, err := m.Do(t.Context(), "dead", func() (int, error) {
			calls++
			return 0, dead
		})
		if !errors.Is(err, dead) {
			t.Errorf("got %v", err)
		}
	}
	if calls != 1 {
		t.Errorf("%d calls", calls)
	}
	if v, err := m.Do(t.Context(), "alive", func() (int, error) { return 7, nil }); v != 7 || err != nil {
		t.Errorf("got %d, %v", v, err)
	}
}

// TestMemoEnds: a caller that waits for the call of another goroutine waits only until its own context ends, and gets the
// cause of that. The call itself continues.
func TestMemoEnds(t *testing.T) {
	var m Memo[string, int]
	started, release := make(chan struct{}), make(chan struct{})
	var first sync.WaitGroup
	first.Go(func() {
		v, err := m.Do(t.Context(), "key", func() (int, error) {
			close(started)
			<-release
			return 7, nil
		})
		if v != 7 || err != nil {
			t.Errorf("the first: %d, %v", v, err)
		}
	})
	<-started
	cause := errors.New("--timeout")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if v, err := m.Do(ctx, "key", nil); v != 0 || !errors.Is(err, cause) {
		t.Errorf("the second: %d, %v", v, err)
	}
	close(release)
	first.Wait()
	if v, err := m.Do(t.Context(), "key", nil); v != 7 || err != nil {
		t.Errorf("the third: %d, %v", v, err)
	}
}

// TestMemoOnce runs many callers of few keys at once: the work is done once per key.
func TestMemoOnce(t *testing.T) {
	var m Memo[int, int]
	var calls atomic.Int32
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			v, err := m.Do(t.Context(), i%3, func() (int, error) {
				calls.Add(1)
				return i % 3 * 10, nil
			})
			if v != i%3*10 || err != nil {
				t.Errorf("%d: %d, %v", i, v, err)
			}
		})
	}
	all.Wait()
	if calls.Load() != 3 {
		t.Errorf("%d calls", calls.Load())
	}
}

// TestOrdered: at most limit calls run at once, all slots are used, and all calls are done when it returns.
func TestOrdered(t *testing.T) {
	for _, test := range []struct{ n, limit, most int }{{12, 3, 3}, {2, 8, 2}, {5, 0, 1}, {3, -1, 1}, {0, 4, 0}} {
		var mu sync.Mutex
		now, most := 0, 0
		full := make(chan struct{})
		done := make([]bool, test.n)
		Ordered(test.n, test.limit, func(i int) {
			mu.Lock()
			now++
			if most = max(most, now); now == test.most {
				select {
				case <-full:
				default:
					close(full)
				}
			}
			mu.Unlock()
			<-full // until the limit is reached
			mu.Lock()
			now--
			done[i] = true
			mu.Unlock()
		})
		if most != test.most || slices.Contains(done, false) {
			t.Errorf("%d of %d at once, want %d; done %v", most, test.n, test.most, done)
		}
	}
}

// TestOrderedStarts: with one slot, the calls start in the order of their numbers.
func TestOrderedStarts(t *testing.T) {
	var order []int
	Ordered(50, 1, func(i int) { order = append(order, i) })
	if !slices.IsSorted(order) || len(order) != 50 {
		t.Errorf("%v", order)
	}
}

// TestSleep waits for a duration, or ends with the cause of its context.
func TestSleep(t *testing.T) {
	if err := Sleep(t.Context(), 0); err != nil {
		t.Errorf("error %v", err)
	}
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if err := Sleep(ctx, time.Hour); !errors.Is(err, over) {
		t.Errorf("error %v", err)
	}
}
