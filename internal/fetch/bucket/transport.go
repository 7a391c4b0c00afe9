package bucket

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// maxListing bounds answers that are read as a whole: a page of a listing has a thousand keys of a kilobyte.
const maxListing = 64 << 20

// bucketTransport keeps the limit per host, and bounds the answers that the stores' packages read without a limit.
type bucketTransport struct {
	pool  *auth.Pool
	limit func(ctx context.Context, host string) (release func(), err error)
	now   func() time.Time
	// object reports whether a request is for an object. Other requests are for listings and the like.
	object func(*http.Request) bool

	asked atomic.Int64 // nanoseconds, of the last Retry-After
}

func newTransport(c *fetch.Client, p *auth.Proxy, id *auth.Identity) *bucketTransport {
	pool := auth.Connections(c.Connect(id, p))
	// In S3 the requests for objects have no query.
	object := func(r *http.Request) bool { return r.URL.RawQuery == "" }
	return &bucketTransport{pool: pool, limit: c.Acquire, now: c.Config.Now, object: object}
}

// client follows no redirect: credentials are for the host that they were written for.
func (t *bucketTransport) client() *http.Client {
	return &http.Client{Transport: t, CheckRedirect: noRedirect}
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// wait is how long the server has asked to wait, once; 0 is not.
func (t *bucketTransport) wait() time.Duration { return time.Duration(t.asked.Swap(0)) }

func (t *bucketTransport) CloseIdleConnections() { t.pool.CloseIdleConnections() }

// RoundTrip waits for a place at the host, which is kept until the answer's body is closed.
func (t *bucketTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	release, err := t.limit(r.Context(), r.URL.Host)
	if err != nil {
		return nil, err
	}
	answer, err := t.pool.RoundTrip(r)
	if err != nil {
		release()
		return nil, err
	}
	if finding.TransientStatus(answer.StatusCode) {
		t.asked.Store(int64(fetch.RetryAfter(answer.Header, t.now())))
	}
	var body io.Reader = answer.Body
	if answer.StatusCode != http.StatusOK || !t.object(r) {
		body = io.LimitReader(answer.Body, maxListing)
	}
	answer.Body = fetch.ReadCloser{Reader: body, Closer: answer.Body, Closed: release}
	return answer, nil
}

// stsTransport makes refusals errors, before the credentials package looks for XML in them.
type stsTransport struct {
	client *fetch.Client
	next   http.RoundTripper
	sts    *STS
}

func (t *stsTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	if err != nil || answer.StatusCode == http.StatusOK {
		return answer, err
	}
	return nil, fetch.NewStatusError(answer, r.URL.String(), t.sts.scrub, t.client.Config.Now())
}
