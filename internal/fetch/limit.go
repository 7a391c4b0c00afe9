package fetch

import (
	"context"
	"net/url"
	"sync"
)

// A limiter bounds the transfers per host, over all transports.
type limiter struct {
	perHost int
	hosts   sync.Map // of chan struct{}, by name
}

// Acquire waits for a place at the host. The function that it returns gives the place back, once.
func (l *limiter) acquire(ctx context.Context, host string) (release func(), err error) {
	places := l.places(host)
	select {
	case places <- struct{}{}:
		return sync.OnceFunc(func() { <-places }), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *limiter) places(host string) chan struct{} {
	places, _ := l.hosts.LoadOrStore(host, make(chan struct{}, l.perHost))
	return places.(chan struct{})
}

// A Slot is the only place that a fetch operation holds, at the host of its current request. It never holds two, so that
// operations that redirect to each other's hosts cannot block each other. The operation makes it with NewSlot, uses it alone,
// from one goroutine at a time, and frees it at its end.
type Slot struct {
	limit   *limiter
	host    string
	release func()
}

// NewSlot returns a slot that is at no host yet.
func (c *Client) NewSlot() *Slot { return &Slot{limit: c.limit} }

// Acquire waits for a place at the host. The function that it returns gives the place back, once.
func (c *Client) Acquire(ctx context.Context, host string) (release func(), err error) {
	return c.limit.acquire(ctx, host)
}

// Move makes the slot one of the URL's host.
func (s *Slot) Move(ctx context.Context, u *url.URL) error {
	if s.release != nil && s.host == u.Host {
		return nil
	}
	s.Free()
	release, err := s.limit.acquire(ctx, u.Host)
	if err != nil {
		return err
	}
	s.host, s.release = u.Host, release
	return nil
}

type slotKey struct{}

// WithSlot returns a context for the requests of a slot, and for the requests that they need first, such as for a
// token.
func WithSlot(ctx context.Context, s *Slot) context.Context {
	return context.WithValue(ctx, slotKey{}, s)
}

// EnterHost moves the slot of a context, if it has one, to the URL's host.
func EnterHost(ctx context.Context, u *url.URL) error {
	if s, ok := ctx.Value(slotKey{}).(*Slot); ok {
		return s.Move(ctx, u)
	}
	return nil
}

// LeaveHost frees the slot of a context while its operation waits for something else in this process.
func LeaveHost(ctx context.Context) {
	if s, ok := ctx.Value(slotKey{}).(*Slot); ok {
		s.Free()
	}
}

// Free gives up the place that the slot has, if it has one.
func (s *Slot) Free() {
	if s.release != nil {
		s.release()
		s.release = nil
	}
}
