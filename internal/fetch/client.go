// Package fetch holds the code that all kinds of sources share: a client that bounds transfers per host and retries after
// transient failures, errors of servers without their secrets, progress, proxies, and the file trees of sources. The
// packages below it access one kind of source each. They do not choose versions, build charts or store anything; bytes are
// written to the writer that the caller passes.
package fetch

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/work"
)

// A Sink receives a download. Reset is called before every attempt: it discards the bytes written so far.
type Sink interface {
	io.Writer
	Reset() error
}

// WatchedSink distinguishes the error of a sink from errors of the network.
type WatchedSink struct {
	Sink

	Err error // of the last failure, or nil
}

func (w *WatchedSink) Write(b []byte) (int, error) {
	n, err := w.Sink.Write(b)
	if err != nil {
		w.Err = err
	}
	return n, err
}

// Reset resets the sink.
func (w *WatchedSink) Reset() error {
	w.Err = w.Sink.Reset()
	return w.Err
}

// DefaultPerHost is the limit of concurrent transfers per host.
const DefaultPerHost = 4

// Config holds a Client's edges to the world.
type Config struct {
	Dial      func(ctx context.Context, network, addr string) (net.Conn, error) // nil dials as package net does
	Getenv    func(string) string                                               // for proxies; nil is no proxy
	UserAgent string
	Retries   int // attempts after the first one
	// PrivateRedirects follows redirects from public hosts to private addresses, also with a login of the environment.
	PrivateRedirects bool
	PerHost          int // transfers per host at the same time; 0 is DefaultPerHost

	Now func() time.Time // required
	// Sleep waits, or returns early with the context's cause. nil waits in real time.
	Sleep func(ctx context.Context, d time.Duration) error
	// Rand returns a number in [0,1), for the jitter of waits. nil is random.
	Rand func() float64
}

// Client holds the state that all repositories of one run share: retries, the limit per host, connections. NewClient
// makes it, its configuration does not change, and CloseIdleConnections ends it. It is safe for concurrent use.
type Client struct {
	Config     Config
	limit      *limiter
	unresolved *unresolved
	transports sync.Map // of http.RoundTripper, by their options
}

// NewClient returns a Client.
func NewClient(c Config) *Client {
	if c.PerHost <= 0 {
		c.PerHost = DefaultPerHost
	}
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	if c.Sleep == nil {
		c.Sleep = work.Sleep
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	hosts := &unresolved{hosts: map[string]*net.DNSError{}}
	c.Dial = hosts.dialer(c.Dial)
	return &Client{Config: c, limit: &limiter{perHost: c.PerHost}, unresolved: hosts}
}

// Transport returns the Transport for an identity that belongs to the host of base. Repositories with the same
// credentials on the same host share it.
func (c *Client) Transport(id *auth.Identity, base *url.URL, passCredentials bool) http.RoundTripper {
	key := id.Key() + " " + auth.Origin(base) + " " + strconv.FormatBool(passCredentials)
	return c.Shared(key, func() http.RoundTripper {
		o := c.Connect(id, nil)
		o.Base, o.PassCredentials = base, passCredentials
		return auth.NewTransport(o)
	})
}

// Shared returns the transport with a key, and makes it on the first call.
func (c *Client) Shared(key string, transport func() http.RoundTripper) http.RoundTripper {
	t, found := c.transports.Load(key)
	if !found {
		t, _ = c.transports.LoadOrStore(key, transport())
	}
	return t.(http.RoundTripper)
}

// Connect returns the options for connections with an identity, through the proxy of a manifest if it is not nil.
func (c *Client) Connect(id *auth.Identity, p *auth.Proxy) auth.TransportOptions {
	return auth.TransportOptions{
		Identity: id, Proxy: p, Dial: c.Config.Dial, Getenv: c.Config.Getenv,
		UserAgent: c.Config.UserAgent, AllowPrivate: c.Config.PrivateRedirects,
	}
}

// CloseIdleConnections closes the connections that no transfer uses.
func (c *Client) CloseIdleConnections() {
	for _, t := range c.transports.Range {
		if closer, ok := t.(interface{ CloseIdleConnections() }); ok {
			closer.CloseIdleConnections()
		}
	}
}
