package fetch

import (
	"io"
	"net/http"
	"net/url"

	"github.com/helmsrc/helmsrc/internal/auth"
)

// maxListing bounds answers that are read as a whole: a page of a listing has a thousand keys of a kilobyte.
const maxListing = 64 << 20

// bucketTransport keeps the limit per host, and bounds what the minio package reads without a limit.
type bucketTransport struct {
	pool  *auth.Pool
	limit *limiter
}

func (c *Client) bucketTransport(p *Proxy, id *auth.Identity) *bucketTransport {
	getenv := c.config.Getenv
	if p != nil {
		getenv = p.getenv()
	}
	pool := auth.Connections(auth.TransportOptions{Identity: id, Dial: c.config.Dial, Getenv: getenv})
	return &bucketTransport{pool: pool, limit: c.limit}
}

func (t *bucketTransport) CloseIdleConnections() { t.pool.CloseIdleConnections() }

// RoundTrip waits for a place at the host, which is kept until the answer's body is closed.
func (t *bucketTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	release, err := t.limit.acquire(r.Context(), r.URL.Host)
	if err != nil {
		return nil, err
	}
	answer, err := t.pool.RoundTrip(r)
	if err != nil {
		release()
		return nil, err
	}
	var body io.Reader = answer.Body
	if answer.StatusCode != http.StatusOK || readWhole(r.URL) {
		body = io.LimitReader(answer.Body, maxListing)
	}
	answer.Body = readCloser{body, &releasingCloser{answer.Body, release}}
	return answer, nil
}

type releasingCloser struct {
	io.Closer
	release func()
}

func (c *releasingCloser) Close() error {
	defer c.release()
	return c.Closer.Close()
}

// readWhole tells whether the answer is a listing, or another one in XML: the requests for objects have no query.
func readWhole(u *url.URL) bool { return u.RawQuery != "" }

// stsTransport makes refusals errors, before the credentials package looks for XML in them.
type stsTransport struct {
	client *Client
	next   http.RoundTripper
	sts    *BucketSTS
}

func (t *stsTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	if err != nil || answer.StatusCode == http.StatusOK {
		return answer, err
	}
	return nil, newStatusError(answer, r.URL.String(), snippet(answer), t.sts.scrub, t.client.config.Now())
}
