package fetch

import (
	"errors"
	"fmt"
	"io"
)

const (
	aheadBytes  = 256 << 10
	aheadPieces = 4
)

// pumpAhead is pump with the transfer in a goroutine of its own: reading, writing and hashing an index takes about as
// long as scanning it.
func pumpAhead(b *body, dst io.Writer, consume func(io.Reader) error) error {
	t := &tee{from: b, to: dst}
	a := readAhead(t)
	defer a.halt(b.raw)
	err := consume(a)
	if err == nil {
		err = a.drain()
	}
	switch {
	case !a.failed(): // b and t are not ours to look at: they may be at it still
		return err
	case b.err != nil:
		return b.err
	default:
		return fmt.Errorf("failed to write what is downloaded: %w", t.err)
	}
}

// ahead is a reader of what another goroutine reads, which is at most aheadPieces in front.
type ahead struct {
	free chan []byte // room to read into
	full chan piece  // in order; closed when the other goroutine is done
	stop chan struct{}

	now  []byte // the piece that is being read
	seen int    // how much of it was read
	err  error  // what follows
}

type piece struct {
	bytes []byte
	err   error
}

func readAhead(r io.Reader) *ahead {
	a := &ahead{
		// Neither ever blocks a sender: they have room for all pieces that there are.
		free: make(chan []byte, aheadPieces),
		full: make(chan piece, aheadPieces),
		stop: make(chan struct{}),
	}
	for range aheadPieces {
		a.free <- make([]byte, aheadBytes)
	}
	go a.fill(r)
	return a
}

func (a *ahead) fill(r io.Reader) {
	defer close(a.full)
	for {
		select {
		case <-a.stop:
			return
		case room := <-a.free:
			n, err := r.Read(room)
			a.full <- piece{room[:n], err}
			if err != nil {
				return
			}
		}
	}
}

// Read implements io.Reader.
func (a *ahead) Read(p []byte) (int, error) {
	for a.seen == len(a.now) {
		if err := a.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, a.now[a.seen:])
	a.seen += n
	return n, nil
}

// next goes on to the next piece.
func (a *ahead) next() error {
	if a.err != nil {
		return a.err
	}
	if a.now != nil {
		a.free <- a.now[:cap(a.now)]
	}
	p := <-a.full
	a.now, a.seen, a.err = p.bytes, 0, p.err
	return nil
}

// drain reads to the end.
func (a *ahead) drain() error {
	for {
		if err := a.next(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// failed tells whether the transfer has ended otherwise than with the end of the file, as far as was read.
func (a *ahead) failed() bool { return a.err != nil && !errors.Is(a.err, io.EOF) }

// halt ends the other goroutine, wherever it is. Closing what it reads from ends a read that waits.
func (a *ahead) halt(from io.Reader) {
	close(a.stop)
	if c, ok := from.(io.Closer); ok {
		_ = c.Close()
	}
	for range a.full { // until it is closed
		continue
	}
}
