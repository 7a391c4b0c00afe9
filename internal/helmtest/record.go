package helmtest

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Request is one request that a server received.
type Request struct {
	Method string
	Host   string
	URI    string // path and query; "host:port" of a CONNECT
	Status int    // 0 while, or when, no answer was given
	Header http.Header

	awaited bool
}

// String returns one line: method, URI, status, and the credentials that came with the request, in clear.
func (r Request) String() string {
	status := "-"
	if r.Status != 0 {
		status = fmt.Sprint(r.Status)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Method, r.URI, status, credentials(r.Header)))
}

// credentials returns Basic credentials decoded, and only the scheme of a bearer token: tokens are random.
func credentials(h http.Header) string {
	for _, key := range []string{"Authorization", "Proxy-Authorization"} {
		kind, value, _ := strings.Cut(h.Get(key), " ")
		if clear, err := base64.StdEncoding.DecodeString(value); err == nil && strings.EqualFold(kind, "basic") {
			return kind + " " + string(clear)
		}
		if kind != "" {
			return kind
		}
	}
	return ""
}

// Log collects the requests of one server in order of arrival.
type Log struct {
	mu       sync.Mutex
	requests []*Request
	drained  int
	waiting  []chan struct{} // closed at the next request
}

// Await returns once there is a request with this method and URI that no other call has waited for.
func (l *Log) Await(method, uri string) {
	l.await(func() bool {
		for _, r := range l.requests {
			if r.Method == method && r.URI == uri && !r.awaited {
				r.awaited = true
				return true
			}
		}
		return false
	})
}

// AwaitCount returns once there have been n requests.
func (l *Log) AwaitCount(n int) {
	l.await(func() bool { return len(l.requests) >= n })
}

func (l *Log) await(done func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !done() {
		more := make(chan struct{})
		l.waiting = append(l.waiting, more)
		l.mu.Unlock()
		<-more
		l.mu.Lock()
	}
}

func (l *Log) add(r *Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, r)
	for _, more := range l.waiting {
		close(more)
	}
	l.waiting = nil
}

// All returns every request so far.
func (l *Log) All() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return copies(l.requests)
}

// Drain returns the requests that came since the last call.
func (l *Log) Drain() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := copies(l.requests[l.drained:])
	l.drained = len(l.requests)
	return out
}

func copies(in []*Request) []Request {
	out := make([]Request, len(in))
	for i, r := range in {
		out[i] = *r
	}
	return out
}

// Strings formats requests, one line each.
func Strings(requests []Request) []string {
	var lines []string
	for _, r := range requests {
		lines = append(lines, r.String())
	}
	return slices.Clip(lines)
}

// Record returns a handler that records each request before it passes it on.
func (l *Log) Record(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		uri := r.RequestURI
		if r.Method == http.MethodConnect {
			uri = r.Host
		}
		req := &Request{Method: r.Method, Host: r.Host, URI: uri, Header: r.Header.Clone()}
		l.add(req)
		next.ServeHTTP(&recorder{w, l, req}, r)
	})
}

// recorder records the status when it is sent, so that a client that has the answer finds it in the log.
type recorder struct {
	http.ResponseWriter
	log *Log
	req *Request
}

func (r *recorder) WriteHeader(code int) {
	r.note(code)
	r.ResponseWriter.WriteHeader(code)
}

func (r *recorder) Write(p []byte) (int, error) {
	r.note(http.StatusOK)
	return r.ResponseWriter.Write(p)
}

func (r *recorder) note(code int) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	if r.req.Status == 0 {
		r.req.Status = code
	}
}

func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
