package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
)

// download gets u into dst, and shows consume every byte on the way. consume does not have to read to the end.
func (x *exchange) download(ctx context.Context, u *url.URL, dst Sink, limit int64, tooLarge error, consume func(io.Reader) error) error {
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
	b := &body{
		ctx: ctx, raw: answer.Body, url: u.String(), left: limit, tooLarge: tooLarge,
		progress: Progress{Attempt: x.attempt, Total: answer.ContentLength},
	}
	if x.ahead {
		return pumpAhead(b, dst, consume)
	}
	return pump(b, dst, consume)
}

// pump decides whose fault a failure is. A consumer that stops in the middle of a file may do so because the file ends
// there, so what the network and the disk say counts for more.
func pump(b *body, dst io.Writer, consume func(io.Reader) error) error {
	t := &tee{from: b, to: dst}
	err := consume(t)
	if err == nil {
		err = drain(t)
	}
	switch {
	case b.err != nil:
		return b.err
	case t.err != nil:
		return fmt.Errorf("failed to write what is downloaded: %w", t.err)
	}
	return err
}

// drain reads to the end. io.Discard would read, and so write, in small pieces.
func drain(r io.Reader) error {
	buffer := make([]byte, 64<<10)
	for {
		if _, err := r.Read(buffer); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// body is what is transferred: bounded, counted, with errors that can be shown.
type body struct {
	ctx      context.Context
	raw      io.Reader
	url      string // empty for a local file
	left     int64
	tooLarge error
	progress Progress

	err error // not io.EOF
}

// failed describes what ended the transfer.
func (b *body) failed(err error) error {
	if b.url == "" {
		return err
	}
	return &bodyError{newRequestError(b.ctx, b.url, err)}
}

func (b *body) Read(p []byte) (int, error) {
	if b.err == nil && b.ctx.Err() != nil {
		b.err = b.failed(endOf(b.ctx))
	}
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.raw.Read(p)
	if int64(n) > b.left {
		b.err = b.tooLarge
		return 0, b.err
	}
	b.left -= int64(n)
	if n > 0 {
		b.progress.Read += int64(n)
		report(b.ctx, b.progress)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = b.failed(err)
		err = b.err
	}
	return n, err
}

// A bodyError is a RequestError after the server has answered: whatever cuts an answer short is the network, unless it
// is the user.
type bodyError struct{ *RequestError }

func (e *bodyError) Unwrap() error { return e.RequestError }

func (e *bodyError) Transient() bool {
	return !errors.Is(e.Err, context.Canceled) && !tlsAlert(e.Err)
}

// tee is io.TeeReader with the writer's errors kept apart.
type tee struct {
	from io.Reader
	to   io.Writer
	err  error
}

func (t *tee) Read(p []byte) (int, error) {
	n, err := t.from.Read(p)
	if n > 0 {
		if _, werr := t.to.Write(p[:n]); werr != nil {
			t.err = werr
			return 0, werr
		}
	}
	return n, err
}

// head keeps the beginning of what is read.
type head struct {
	from  io.Reader
	bytes []byte
}

const maxHead = 64

func (h *head) Read(p []byte) (int, error) {
	n, err := h.from.Read(p)
	if room := maxHead - len(h.bytes); room > 0 {
		h.bytes = append(h.bytes, p[:min(n, room)]...)
	}
	return n, err
}
