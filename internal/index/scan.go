package index

import (
	"bytes"
	"io"
	"slices"
)

// Scan reads an index to its end, once, while it is being downloaded or copied. What it recognises it judges here and
// now: syntax, keys, apiVersion. What it does not recognise is judged by [Offsets.Check].
func Scan(r io.Reader) (*Offsets, error) {
	return scanIndex(newWindow(r, windowSize))
}

func scanIndex(w *window) (*Offsets, error) {
	for w.end < len(byteOrderMark) && w.fill() {
	}
	if w.end == 0 {
		if err := w.failure(); err != nil {
			return nil, err
		}
		return nil, errEmpty
	}
	found, err := scanWindow(w)
	if err != nil {
		return nil, err
	}
	if found.whole {
		w.drain()
	}
	if err := w.failure(); err != nil {
		return nil, err
	}
	if !found.whole && len(found.strange) == 0 && !found.apiVersion {
		return nil, errNoAPIVersion
	}
	return newOffsets(found, w.offset()), nil
}

func scanWindow(w *window) (*layout, error) {
	if startsObject(w.buf[:w.end]) {
		return scanJSON(w)
	}
	return scanYAML(w)
}

const byteOrderMark = "\xef\xbb\xbf"

func startsObject(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n")
	return len(b) > 0 && b[0] == '{'
}

func scanYAML(w *window) (*layout, error) {
	if bytes.HasPrefix(w.buf[:w.end], []byte(byteOrderMark)) {
		w.pos += len(byteOrderMark)
	}
	s := newScanner()
	s.scan(w)
	return &s.layout, s.fatal
}

// scan reads lines to the end, or to where the scanner wants no more.
func (s *scanner) scan(w *window) {
	for {
		line, long, ok := w.line()
		if !ok {
			break
		}
		more := s.line(line, long)
		if long {
			w.skipLine()
		}
		if s.at = w.offset(); !more {
			return
		}
	}
	s.finish(w.offset())
}

func newOffsets(found *layout, size int64) *Offsets {
	o := &Offsets{size: size, layout: *found}
	if len(o.strange) == 0 && !o.whole {
		o.sort()
	}
	return o
}

// sort makes the charts ready to be looked up. The regions refer to the order before.
func (o *Offsets) sort() {
	slices.SortFunc(o.charts, func(a, b chart) int { return bytes.Compare(o.name(&a), o.name(&b)) })
}
