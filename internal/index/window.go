package index

import (
	"bytes"
	"errors"
	"io"
)

const (
	windowSize = 64 << 10

	// maxLine is the longest line that is recognised. A longer one is left to the full parser.
	maxLine = 1 << 20
)

// A window is the part of a stream that is in memory.
type window struct {
	r        io.Reader
	buf      []byte
	pos, end int   // what is not consumed yet
	base     int64 // offset of buf[0]
	limit    int   // how large buf may become
	err      error // what the reader said at its end
}

func newWindow(r io.Reader, size int) *window {
	return &window{r: r, buf: make([]byte, size), limit: maxLine}
}

// offset is where in the stream the next byte to consume is.
func (w *window) offset() int64 { return w.base + int64(w.pos) }

// fill reads more. It says whether there is more, or the window is full and may not grow.
func (w *window) fill() bool {
	if w.err != nil {
		return false
	}
	if w.pos > 0 {
		w.end = copy(w.buf, w.buf[w.pos:w.end])
		w.base += int64(w.pos)
		w.pos = 0
	}
	if w.end == len(w.buf) {
		if w.end >= w.limit {
			return false
		}
		w.buf = append(w.buf, make([]byte, min(len(w.buf), w.limit-len(w.buf)))...)
	}
	for range maxEmptyReads {
		n, err := w.r.Read(w.buf[w.end:])
		w.end += n
		if err != nil {
			w.err = err
		}
		if n > 0 || err != nil {
			return n > 0
		}
	}
	w.err = io.ErrNoProgress
	return false
}

const maxEmptyReads = 100

// Read implements io.Reader.
func (w *window) Read(p []byte) (int, error) {
	if w.pos == w.end && !w.fill() {
		return 0, w.err
	}
	n := copy(p, w.buf[w.pos:w.end])
	w.pos += n
	return n, nil
}

// failure is why the stream ended, if not because it is over.
func (w *window) failure() error {
	if w.err == nil || errors.Is(w.err, io.EOF) {
		return nil
	}
	return w.err
}

// line consumes a line and returns it without its end; it is valid until more is read. Of a line that is too long, only
// the beginning is consumed and returned.
func (w *window) line() (line []byte, long, ok bool) {
	rest := w.buf[w.pos:w.end]
	if i := bytes.IndexByte(rest, '\n'); i >= 0 {
		w.pos += i + 1
		return rest[:i], false, true
	}
	return w.nextLine()
}

// nextLine is line where the window has to move.
func (w *window) nextLine() (line []byte, long, ok bool) {
	for seen := 0; ; {
		if i := bytes.IndexByte(w.buf[w.pos+seen:w.end], '\n'); i >= 0 {
			line = w.buf[w.pos : w.pos+seen+i]
			w.pos += seen + i + 1
			return line, false, true
		}
		seen = w.end - w.pos
		if w.fill() {
			continue
		}
		line = w.buf[w.pos:w.end]
		w.pos = w.end
		return line, w.err == nil, len(line) > 0
	}
}

// skipLine consumes the rest of a line.
func (w *window) skipLine() {
	for {
		if i := bytes.IndexByte(w.buf[w.pos:w.end], '\n'); i >= 0 {
			w.pos += i + 1
			return
		}
		w.pos = w.end
		if !w.fill() {
			return
		}
	}
}

// drain consumes everything.
func (w *window) drain() {
	for {
		w.pos = w.end
		if !w.fill() {
			return
		}
	}
}
