package index

import (
	"bufio"
	"errors"
	"io"
)

// maxLine is the limit, in bytes, of a line with its end. A longer line is left to the full parser.
const maxLine = 1 << 20

// A window is the part of a stream that is in memory.
type window struct {
	*bufio.Reader
	stream *stream
	at     int64 // offset of the next line
}

// A stream counts the bytes that are read from it, and keeps its first error other than io.EOF.
type stream struct {
	from io.Reader
	size int64
	idle int // reads of nothing in a row
	err  error
}

func newWindow(r io.Reader, size int64) *window {
	s := &stream{from: r}
	return &window{Reader: bufio.NewReaderSize(s, int(min(size, maxLine))), stream: s}
}

// maxIdle is the number of reads without bytes in a row after which a stream fails.
const maxIdle = 100

// Read implements io.Reader, for the window. After an error it returns the same error again.
func (s *stream) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.from.Read(p)
	s.size += int64(n)
	if s.idle++; n > 0 {
		s.idle = 0
	}
	if err == nil && s.idle == maxIdle {
		err = io.ErrNoProgress
	}
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// line consumes a line and returns it without its end; it is valid until the next read. A line that is too long comes in
// parts, of which all except the last are long.
func (w *window) line() (line []byte, long, ok bool) {
	line, err := w.ReadSlice('\n')
	w.at += int64(len(line))
	if err == nil {
		return line[:len(line)-1], false, true
	}
	return line, errors.Is(err, bufio.ErrBufferFull), len(line) > 0
}
