package helmrepo

import (
	"context"
	"fmt"
	"io"
	"net/url"

	"github.com/helmsrc/helmsrc/internal/fetch"
)

// download downloads u into dst, and passes every byte to consume meanwhile. consume does not have to read to the end.
func (x *exchange) download(ctx context.Context, u *url.URL, dst fetch.Sink, limit int64, tooLarge error, consume func(io.Reader) error) error {
	if err := dst.Reset(); err != nil {
		return fmt.Errorf("cannot start over: %w", err)
	}
	answer, err := x.get(ctx, u)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.ContentLength > limit {
		return tooLarge
	}
	b := &fetch.Body{
		Ctx: ctx, Raw: answer.Body, URL: u.String(), Left: limit, TooLarge: tooLarge,
		Progress: fetch.Progress{Total: answer.ContentLength},
	}
	return fetch.Pump(b, dst, consume)
}
