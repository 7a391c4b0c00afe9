package fetch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// pieceBytes is how much is written at a time. Whole pages take the system much less work than pieces as a network cuts
// them.
const pieceBytes = 256 << 10

// PumpBuffered is [Pump] with the transfer in a separate goroutine: reading, writing and hashing an index takes about as
// long as scanning it. Bytes can be consumed as soon as they arrive.
func PumpBuffered(b *Body, dst io.Writer, consume func(io.Reader) error) error {
	r, w := io.Pipe()
	out := bufio.NewWriterSize(dst, pieceBytes)
	t := &Tee{From: b, To: out}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, err := io.CopyBuffer(struct{ io.Writer }{w}, t, make([]byte, pieceBytes/4))
		if err == nil {
			t.Err = out.Flush()
			err = t.Err
		}
		_ = w.CloseWithError(err)
	}()
	in := &endedReader{from: r}
	err := consume(in)
	if err == nil {
		err = Drain(in)
	}
	failed := in.err != nil && !errors.Is(in.err, io.EOF)
	// A consumer that has seen enough waits for no server.
	_ = r.Close()
	if c, ok := b.Raw.(io.Closer); ok {
		_ = c.Close()
	}
	<-over
	switch {
	case !failed:
		return err
	case b.err != nil:
		return b.err
	}
	return fmt.Errorf("failed to write the download: %w", t.Err)
}

// endedReader records the error that ended the reading.
type endedReader struct {
	from io.Reader
	err  error
}

func (r *endedReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.err = err
	return n, err
}
