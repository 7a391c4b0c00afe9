package helmtest

import (
	"crypto/tls"
	"encoding/base64"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
)

// Server is a server of a [Network]. Each request is recorded in its log, then perhaps disturbed by a fault, then answered.
type Server struct {
	Addr string // name and port in the network
	URL  string // scheme and name, without the port if it is the scheme's own
	Log  *Log

	real    string
	tls     *tls.Config
	handler atomic.Pointer[http.Handler]
	http    *http.Server
}

// Serve starts a server at addr, a name and port, which runs until Close. The TLS configuration may be nil.
func Serve(n *Network, addr string, secure *tls.Config, h http.Handler) (*Server, error) {
	l, err := n.Listen(addr)
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: addr, URL: baseURL(addr, secure != nil), Log: &Log{}, real: l.Addr().String(), tls: secure}
	s.Use(h)
	s.serve(l)
	return s, nil
}

// Use replaces the handler for later requests.
func (s *Server) Use(h http.Handler) { s.handler.Store(&h) }

func (s *Server) serve(l net.Listener) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*s.handler.Load()).ServeHTTP(w, r) })
	srv := &http.Server{Handler: s.Log.Record(h), ErrorLog: log.New(io.Discard, "", 0), TLSConfig: s.tls.Clone()}
	s.http = srv
	if s.tls == nil {
		go func() { _ = srv.Serve(l) }()
		return
	}
	go func() { _ = srv.ServeTLS(l, "", "") }()
}

// Close stops the server and closes its connections. New ones are refused.
func (s *Server) Close() { _ = s.http.Close() }

// Restart starts a closed server again at the same address.
func (s *Server) Restart() error {
	l, err := listen(s.real)
	if err != nil {
		return err
	}
	s.serve(l)
	return nil
}

func baseURL(addr string, secure bool) string {
	scheme, port := "http", "80"
	if secure {
		scheme, port = "https", "443"
	}
	if host, p, err := net.SplitHostPort(addr); err == nil && p == port {
		addr = host
	}
	return scheme + "://" + addr
}

// BasicAuth returns a handler that requires USER:PASSWORD for every request, or next if user is empty.
func BasicAuth(user string, next http.Handler) http.Handler {
	if user == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !authorized(r.Header.Get("Authorization"), user) {
			w.Header().Set("WWW-Authenticate", `Basic realm="helmtest"`)
			http.Error(w, "credentials required", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func authorized(header, user string) bool {
	return header == "Basic "+base64.StdEncoding.EncodeToString([]byte(user))
}
