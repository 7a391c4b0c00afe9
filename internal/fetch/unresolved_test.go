package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"
)

// TestUnresolved looks a host up in every attempt of the first source, but not for later sources. A host is not recorded if its
// attempts ended for another reason, or succeeded in the end.
func TestUnresolved(t *testing.T) {
	lookedUp := 0
	answer := func(int) error { return &net.DNSError{Err: "no such host", Name: "gone.test", IsNotFound: true} }
	c := NewClient(Config{
		Retries: 3, Sleep: func(context.Context, time.Duration) error { return nil },
		Dial: func(context.Context, string, string) (net.Conn, error) {
			lookedUp++
			return nil, answer(lookedUp)
		},
	})
	retry := func(ctx context.Context, want int) {
		t.Helper()
		lookedUp = 0
		err := c.Retry(ctx, func(ctx context.Context) error {
			if _, err := c.Config.Dial(ctx, "tcp", "gone.test:443"); err != nil {
				return fmt.Errorf("cannot connect: %w", err)
			}
			return nil
		})
		var dns *net.DNSError
		if lookedUp != want || errors.As(err, &dns) && !dns.IsNotFound || err != nil && !Transient(err) {
			t.Errorf("%d look-ups, want %d: %v", lookedUp, want, err)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	retry(cancelled, 1)
	first := answer
	answer = func(n int) error {
		if n < 4 {
			return first(n)
		}
		return errors.New("refused")
	}
	_ = c.Retry(t.Context(), func(ctx context.Context) error {
		_, err := c.Config.Dial(ctx, "tcp", "gone.test:443")
		return err
	})
	answer = first
	retry(t.Context(), 4)
	retry(t.Context(), 0)
	if _, err := c.Config.Dial(t.Context(), "tcp", "gone.test:80"); err == nil || err.Error() != "dial tcp: lookup gone.test: no such host" {
		t.Error(err)
	}
	for i := range 2 * maxUnresolved {
		c.unresolved.remember(&net.DNSError{Name: fmt.Sprint(i)})
	}
	if got := len(c.unresolved.hosts); got != maxUnresolved {
		t.Errorf("%d hosts are remembered, want %d", got, maxUnresolved)
	}
}
