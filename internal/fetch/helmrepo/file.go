package helmrepo

import (
	"context"
	"net/url"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
)

// File downloads the file at a URL into dst, at most limit bytes of it and within the timeout. It sends no login to any server.
func File(ctx context.Context, c *fetch.Client, raw string, timeout time.Duration, dst fetch.Sink, limit int64, tooLarge error) error {
	u, err := auth.ParseURL(raw)
	switch {
	case err != nil:
		return auth.RedactURLError(err)
	case u.Scheme != "http" && u.Scheme != "https":
		return fetch.UnsupportedScheme(u.Scheme)
	case u.Hostname() == "":
		return auth.RedactURLError(&url.Error{Op: "parse", URL: raw, Err: fetch.ErrNoHost})
	}
	u.User = nil
	h := &Repository{client: c, base: u, transport: c.Transport(nil, u, false), options: Options{Timeout: timeout}}
	return h.operation(ctx, u, func(ctx context.Context, x *exchange) error {
		return x.download(ctx, u, dst, limit, tooLarge, fetch.Drain)
	})
}
