// Package work runs shared work once per key, and a bounded number of tasks at a time, in order. It does not know the work.
package work

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Memo does work once per key and run and keeps the result, also an error: a hundred charts of one dead repository make one
// request and report one cause. It is safe for concurrent use; the zero value is ready.
type Memo[K comparable, V any] struct {
	mu    sync.Mutex
	calls map[K]*call[V]
}

type call[V any] struct {
	done  chan struct{}
	value V
	err   error
}

// Do returns the result of the first call for key. Later callers wait for it, but no longer than their context lives.
func (m *Memo[K, V]) Do(ctx context.Context, key K, work func() (V, error)) (V, error) {
	m.mu.Lock()
	c, found := m.calls[key]
	if !found {
		if m.calls == nil {
			m.calls = map[K]*call[V]{}
		}
		c = &call[V]{done: make(chan struct{})}
		m.calls[key] = c
	}
	m.mu.Unlock()

	if !found {
		defer close(c.done)
		c.value, c.err = work()
		return c.value, c.err
	}
	select {
	case <-c.done:
		return c.value, c.err
	case <-ctx.Done():
		var none V
		return none, context.Cause(ctx)
	}
}

// Forget drops the result for a key: the next call does the work again.
func (m *Memo[K, V]) Forget(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.calls, key)
}

// Ordered calls work for 0 to n-1, at most limit at a time, and starts the calls in that order. Work stores its result by
// position.
func Ordered(n, limit int, work func(i int)) {
	var running sync.WaitGroup
	var started atomic.Int64
	for range min(n, max(1, limit)) {
		running.Go(func() {
			for i := int(started.Add(1)) - 1; i < n; i = int(started.Add(1)) - 1 {
				work(i)
			}
		})
	}
	running.Wait()
}

// Sleep waits for a duration, or until the context ends, and then returns its cause.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
