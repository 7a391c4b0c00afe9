package index

import (
	"bufio"
	"errors"
	"io"
)

// maxLine is the longest line that is recognised, with its end. A longer one is left to the full parser.
const maxLine = 256 << 10

// A window is the part of a stream that is in memory.
type window struct {
	*bufio.Reader
	stream *stream
	at     int64 // offset of the next line
}

// A stream counts what is read of it, and keeps why it ended if it is not over.
type stream struct {
	from io.Reader
	size int64
	err  error
}

func newWindow(r io.Reader, size int64) *window {
	s := &stream{from: r}
	return &window{Reader: bufio.NewReaderSize(s, int(min(size, maxLine))), stream: s}
}

// Read implements io.Reader, for the window.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	s.size += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// line consumes a line and returns it without its end; it is valid until more is read. A line that is too long comes in
// parts: all but the last are long.
func (w *window) line() (line []byte, long, ok bool) {
	line, err := w.ReadSlice('\n')
	w.at += int64(len(line))
	if err == nil {
		return line[:len(line)-1], false, true
	}
	return line, errors.Is(err, bufio.ErrBufferFull), len(line) > 0
}
