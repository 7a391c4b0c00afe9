package fetch

import (
	"errors"
	"fmt"
	"io"
)

const (
	pieceBytes = 256 << 10
	maxPieces  = 4
	// maxReads is how many reads may be waiting that did not fill a piece.
	maxReads = 64
)

// PumpBuffered is pump with the transfer in a goroutine of its own: reading, writing and hashing an index takes about as
// long as scanning it.
func PumpBuffered(b *Body, dst io.Writer, consume func(io.Reader) error) error {
	a := startTransfer(b, dst)
	defer a.halt(b.Raw)
	err := consume(a)
	if err == nil {
		err = a.drain()
	}
	switch {
	case !a.failed(): // b and a.written are not ours to look at: the transfer may go on
		return err
	case b.err != nil:
		return b.err
	default:
		return fmt.Errorf("failed to write what is downloaded: %w", a.written)
	}
}

// bufferedTransfer is a reader of what another goroutine reads and writes, which is at most maxPieces in front.
//
// What has come can be read at once: a server that stalls after a beginning that is no index need not be waited for.
// But only whole pieces are written. They begin and end where pages do, which takes the system much less work than
// pieces as a network cuts them.
type bufferedTransfer struct {
	free chan []byte // room to read into
	full chan read   // in order; closed when the other goroutine is done
	stop chan struct{}

	written error // of the writer; only valid after it was received

	now  read  // what is being read
	seen int   // how much of it was read
	err  error // what follows
}

// A read is a part of a piece.
type read struct {
	bytes []byte
	room  []byte // the whole piece, if this is the last of it
	err   error
}

func startTransfer(from io.Reader, to io.Writer) *bufferedTransfer {
	a := &bufferedTransfer{
		free: make(chan []byte, maxPieces), // for all that there are: giving back never blocks
		full: make(chan read, maxReads),
		stop: make(chan struct{}),
	}
	for range maxPieces {
		a.free <- make([]byte, pieceBytes)
	}
	go a.transfer(from, to)
	return a
}

func (a *bufferedTransfer) transfer(from io.Reader, to io.Writer) {
	defer close(a.full)
	for {
		select {
		case <-a.stop:
			return
		case room := <-a.free:
			if !a.fill(room, from, to) {
				return
			}
		}
	}
}

// fill transfers a piece. It says whether there may be more.
func (a *bufferedTransfer) fill(room []byte, from io.Reader, to io.Writer) bool {
	for n := 0; n < len(room); {
		got, err := from.Read(room[n:])
		r := read{bytes: room[n : n+got], err: err}
		n += got
		if n == len(room) || err != nil {
			r.room = room
			if _, a.written = to.Write(room[:n]); a.written != nil {
				r.bytes, r.err = nil, a.written
			}
		}
		a.full <- r
		if r.err != nil {
			return false
		}
	}
	return true
}

// Read implements io.Reader.
func (a *bufferedTransfer) Read(p []byte) (int, error) {
	for a.seen == len(a.now.bytes) {
		if err := a.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, a.now.bytes[a.seen:])
	a.seen += n
	return n, nil
}

// next goes on to what was read next.
func (a *bufferedTransfer) next() error {
	if a.err != nil {
		return a.err
	}
	if a.now.room != nil {
		a.free <- a.now.room
	}
	a.now, a.seen = <-a.full, 0
	a.err = a.now.err
	return nil
}

// drain reads to the end.
func (a *bufferedTransfer) drain() error {
	for {
		if err := a.next(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// failed reports whether the transfer has ended otherwise than with the end of the file, as far as was read.
func (a *bufferedTransfer) failed() bool { return a.err != nil && !errors.Is(a.err, io.EOF) }

// halt ends the other goroutine, wherever it is. Closing what it reads from ends a read that waits.
func (a *bufferedTransfer) halt(from io.Reader) {
	close(a.stop)
	if c, ok := from.(io.Closer); ok {
		_ = c.Close()
	}
	for range a.full { // until it is closed
		continue
	}
}
