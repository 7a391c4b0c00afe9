package auth

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// A Request describes a request that was sent. It contains no secret.
type Request struct {
	Method string
	URL    string // redacted
	Status int    // 0 if there was no answer
	Bytes  int64  // of the answer's body, as far as it was read
}

type requestsKey struct{}

// WithRequests makes every pool call begin for each request under the context. The function that begin returns is
// called when the body of the answer is closed. Both are called by the goroutines that transfer, and have to be quick.
func WithRequests(ctx context.Context, begin func() (ended func(Request))) context.Context {
	return context.WithValue(ctx, requestsKey{}, begin)
}

// reported sends a request through send, and reports it to the context's function, if it has one.
func reported(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
	begin, ok := r.Context().Value(requestsKey{}).(func() func(Request))
	if !ok {
		return send()
	}
	ended := begin()
	request := Request{Method: r.Method, URL: RedactURL(r.URL.String())}
	answer, err := send()
	if err != nil {
		ended(request)
		return answer, err
	}
	request.Status = answer.StatusCode
	answer.Body = &reportedBody{ReadCloser: answer.Body, request: request, ended: ended}
	return answer, nil
}

// A reportedBody counts the bytes read.
type reportedBody struct {
	io.ReadCloser
	request Request
	read    atomic.Int64 // a body may be closed while it is read
	ended   func(Request)
	once    sync.Once
}

func (b *reportedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read.Add(int64(n))
	return n, err
}

func (b *reportedBody) Close() error {
	b.once.Do(func() {
		b.request.Bytes = b.read.Load()
		b.ended(b.request)
	})
	return b.ReadCloser.Close()
}
