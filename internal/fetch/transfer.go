package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Pump decides which side caused a failure. A consumer may stop in the middle of a file because the file ends there, so
// errors of the network and the disk take precedence over its error.
func Pump(b *Body, dst io.Writer, consume func(io.Reader) error) error {
	t := &Tee{From: b, To: dst}
	err := consume(t)
	if err == nil {
		err = Drain(t)
	}
	switch {
	case b.err != nil:
		return b.err
	case t.Err != nil:
		return fmt.Errorf("failed to write the download: %w", t.Err)
	}
	return err
}

// Drain reads to the end. io.Discard would read, and so write, in small pieces.
func Drain(r io.Reader) error {
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

// Body is the body of a transfer: bounded, counted, with errors that can be shown.
type Body struct {
	Ctx      context.Context
	Raw      io.Reader
	URL      string // empty for a local file
	Left     int64
	TooLarge error
	Progress Progress

	err error // not io.EOF
}

// failed describes the error that ended the transfer.
func (b *Body) failed(err error) error {
	if b.URL == "" {
		return err
	}
	return NewBodyError(b.Ctx, b.URL, err)
}

func (b *Body) Read(p []byte) (int, error) {
	if b.err == nil && b.Ctx.Err() != nil {
		b.err = b.failed(EndOf(b.Ctx))
	}
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.Raw.Read(p)
	if int64(n) > b.Left {
		b.err = b.TooLarge
		return 0, b.err
	}
	b.Left -= int64(n)
	if n > 0 {
		b.Progress.Read += int64(n)
		Report(b.Ctx, b.Progress)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = b.failed(err)
		err = b.err
	}
	return n, err
}

// NewBodyError describes an error that cut the body of an answer short: it is one of the network, unless the context has
// ended. The URL is redacted in it.
func NewBodyError(ctx context.Context, url string, err error) error {
	if ctx.Err() != nil {
		err = EndOf(ctx)
	}
	transient := !errors.Is(err, context.Canceled) && !TLSAlert(err)
	return requestError(url, err, transient, func(err error) (text, advice string) { return err.Error(), "" })
}

// Tee is io.TeeReader with the writer's errors kept apart.
type Tee struct {
	From io.Reader
	To   io.Writer
	Err  error
}

func (t *Tee) Read(p []byte) (int, error) {
	n, err := t.From.Read(p)
	if n > 0 {
		if _, werr := t.To.Write(p[:n]); werr != nil {
			t.Err = werr
			return 0, werr
		}
	}
	return n, err
}

// A ReadCloser reads from one place and closes another, and then calls a function, which may be nil.
type ReadCloser struct {
	io.Reader
	io.Closer
	Closed func()
}

// Close closes it.
func (c ReadCloser) Close() error {
	if c.Closed != nil {
		defer c.Closed()
	}
	return c.Closer.Close()
}
