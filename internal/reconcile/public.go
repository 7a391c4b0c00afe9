package reconcile

import (
	"context"
	"net"

	"github.com/helmsrc/helmsrc/internal/auth"
)

// PublicDial is a dialer that opens no connections to loopback, private and link-local addresses, but to the proxies of
// the environment.
func PublicDial(dial func(context.Context, string, string) (net.Conn, error), getenv func(string) string) func(context.Context, string, string) (net.Conn, error) {
	return auth.PublicDial(dial, getenv)
}
