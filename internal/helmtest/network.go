// Package helmtest serves charts from real servers on loopback, filled from a directory tree.
// It is for tests only: the program must not import it.
//
// The servers have their own names (repo.test, registry.test) on a [Network], so that the requests and output of a test
// do not depend on the port that the system happened to give.
package helmtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Network maps names such as "repo.test:80" to listeners on loopback. It is the whole internet of a test: other hosts do not
// exist.
type Network struct {
	mu    sync.Mutex
	addrs map[string]string
}

// NewNetwork returns a network without hosts.
func NewNetwork() *Network {
	return &Network{addrs: map[string]string{}}
}

// ParseNetwork parses the output of [Network.String], in another process.
func ParseNetwork(s string) (*Network, error) {
	n := NewNetwork()
	for pair := range strings.FieldsSeq(s) {
		name, addr, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("network entry %q is not name=address", pair)
		}
		n.addrs[name] = addr
	}
	return n, nil
}

// String lists the hosts as "name:port=address" words, sorted.
func (n *Network) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(n.addrs)) {
		pairs = append(pairs, name+"="+n.addrs[name])
	}
	return strings.Join(pairs, " ")
}

// Listen opens a loopback port and gives it the name, "host:port", in the network.
func (n *Network) Listen(name string) (net.Listener, error) {
	l, err := listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, taken := n.addrs[name]; taken {
		_ = l.Close()
		return nil, fmt.Errorf("two servers at %s", name)
	}
	n.addrs[name] = l.Addr().String()
	return l, nil
}

func listen(addr string) (net.Listener, error) {
	var c net.ListenConfig
	return c.Listen(context.Background(), "tcp", addr)
}

// Refuse adds a host that refuses connections.
func (n *Network) Refuse(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addrs[name] = "refused"
}

// Dial connects to a host of the network or to a loopback address. Other ports of a known host refuse the connection, other
// hosts have no address.
func (n *Network) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	real, known := n.lookup(addr, host)
	switch {
	case real != "" && real != "refused":
		var d net.Dialer
		c, err := d.DialContext(ctx, network, real)
		var op *net.OpError
		if errors.As(err, &op) {
			return nil, &net.OpError{Op: op.Op, Net: op.Net, Addr: name(addr), Err: op.Err}
		}
		if err != nil {
			return nil, err
		}
		return namedConn{c, name(addr)}, nil
	case known:
		return nil, &net.OpError{Op: "dial", Net: network, Addr: name(addr), Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	default:
		return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
	}
}

// lookup returns the real address of addr, and whether any server has the host.
func (n *Network) lookup(addr, host string) (real string, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if real, ok := n.addrs[addr]; ok {
		return real, true
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return addr, true
	}
	for other := range n.addrs {
		if h, _, _ := net.SplitHostPort(other); h == host {
			return "", true
		}
	}
	return "", false
}

// name is the address of a host of the network.
type name string

func (name) Network() string  { return "tcp" }
func (n name) String() string { return string(n) }

// namedConn hides the loopback address from the program under test.
type namedConn struct {
	net.Conn
	remote name
}

func (c namedConn) RemoteAddr() net.Addr { return c.remote }
