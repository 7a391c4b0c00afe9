package fetch

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/helmsrc/helmsrc/internal/auth"
)

// maxUnresolved bounds the hosts that are remembered. More are looked up again.
const maxUnresolved = 10_000

// unresolved records the hosts that did not resolve in an attempt and all its retries. Later requests of the run to such a host
// fail at once: a resolver may take seconds for each answer. Package net joins concurrent look-ups of one host already.
type unresolved struct {
	mu    sync.Mutex
	hosts map[string]*net.DNSError
}

// dialer wraps dial: connections to hosts that did not resolve fail at once.
func (u *unresolved) dialer(dial auth.DialFunc) auth.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(addr)
		if err := u.find(host); err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
		return dial(ctx, network, addr)
	}
}

func (u *unresolved) find(host string) *net.DNSError {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.hosts[host]
}

// has reports whether the error is of a host that is remembered.
func (u *unresolved) has(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && u.find(dns.Name) != nil
}

// remember records the error of the last attempt.
func (u *unresolved) remember(err error) {
	var dns *net.DNSError
	if !errors.As(err, &dns) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.hosts) < maxUnresolved {
		u.hosts[dns.Name] = dns
	}
}
