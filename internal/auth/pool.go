package auth

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"time"
)

// A Pool holds the connections of one identity, which no other identity ever uses: they depend on the identity's TLS
// settings towards every host, proxies, limits. It sends no credentials and no user agent.
//
// If a server refuses the client certificate, or the lack of one, a Pool reports that. With TLS 1.3 the refusal arrives
// when the client takes the connection for established and has begun to send; net/http then reports, depending on
// chance, a broken connection, which looks like a failure of the network.
type Pool struct {
	transport *http.Transport
}

// Connections returns a new pool.
func Connections(o TransportOptions) *Pool {
	return &Pool{&http.Transport{
		Proxy:                  o.proxyFunc(),
		OnProxyConnectResponse: checkTunnel,
		DialContext:            dialWithin(o.Dial, dialTimeout),
		TLSClientConfig:        o.Identity.TLSConfig(),
		TLSHandshakeTimeout:    tlsHandshakeTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		MaxResponseHeaderBytes: maxHeaderBytes,
		// An index is stored as the server sends it, and an archive is compressed already.
		DisableCompression: true,
		// net/http leaves HTTP/2 out when it is given TLS settings, unless asked.
		ForceAttemptHTTP2: true,
	}}
}

// RoundTrip implements http.RoundTripper.
func (p *Pool) RoundTrip(r *http.Request) (*http.Response, error) {
	return reported(r, func() (*http.Response, error) { return p.send(r) })
}

func (p *Pool) send(r *http.Request) (*http.Response, error) {
	var conn net.Conn
	trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { conn = i.Conn }}
	answer, err := p.transport.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil && r.Context().Err() == nil {
		if refusal := alertOn(conn); refusal != nil {
			return nil, refusal
		}
	}
	return answer, err
}

// CloseIdleConnections closes the connections that no request uses.
func (p *Pool) CloseIdleConnections() { p.transport.CloseIdleConnections() }

// alertOn returns the alert with which the other side has ended a connection, or nil. A TLS connection keeps it, even
// when it is closed. Reading would disturb a connection that is still used, but a request has just failed on this one.
func alertOn(conn net.Conn) error {
	c, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	_ = c.SetReadDeadline(time.Unix(1, 0))
	_, err := c.Read(make([]byte, 1))
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		return err
	}
	return nil
}

func dialWithin(dial DialFunc, timeout time.Duration) DialFunc {
	dial = orPlain(dial)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return patientConn{conn}, nil
	}
}

// A patientConn does not fail at once after a failed write: an answer that the server sent before it stopped reading can
// still be read. Without an answer, reading fails with the same error.
type patientConn struct{ net.Conn }

func (c patientConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	var timeout net.Error
	if err == nil || errors.Is(err, net.ErrClosed) || errors.As(err, &timeout) && timeout.Timeout() {
		return n, err
	}
	return len(b), nil
}
