package fetch

import (
	"context"
	"net/url"
	"sync"
)

// A limiter bounds the transfers per host, over all transports.
type limiter struct {
	perHost int

	mu    sync.Mutex
	hosts map[string]chan struct{}
}

func newLimiter(perHost int) *limiter {
	return &limiter{perHost: perHost, hosts: map[string]chan struct{}{}}
}

// acquire waits for a place at the host. The function that it returns gives the place back, once.
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
	l.mu.Lock()
	defer l.mu.Unlock()
	places, found := l.hosts[host]
	if !found {
		places = make(chan struct{}, l.perHost)
		l.hosts[host] = places
	}
	return places
}

// A slot is the one place that a fetch operation holds, whatever hosts it is sent to. Because it never holds two,
// operations that redirect to each other's hosts cannot lock each other out.
type slot struct {
	limit   *limiter
	host    string
	release func()
}

// move makes the slot one of the URL's host.
func (s *slot) move(ctx context.Context, u *url.URL) error {
	if s.release != nil && s.host == u.Host {
		return nil
	}
	s.free()
	release, err := s.limit.acquire(ctx, u.Host)
	if err != nil {
		return err
	}
	s.host, s.release = u.Host, release
	return nil
}

func (s *slot) free() {
	if s.release != nil {
		s.release()
		s.release = nil
	}
}
