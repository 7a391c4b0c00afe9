package index

import (
	"bytes"
	"errors"
	"io"
	"slices"
)

// Scan reads an index to its end, once, while it is being downloaded or copied. It checks the syntax, the keys and
// apiVersion of the parts that it recognises, and leaves the other parts to [Offsets.Check].
func Scan(r io.Reader) (*Offsets, error) { return scanIndex(newWindow(r, maxLine)) }

func scanIndex(w *window) (*Offsets, error) {
	if head, err := w.Peek(len(byteOrderMark)); len(head) == 0 {
		if errors.Is(err, io.EOF) {
			err = errEmpty
		}
		return nil, err
	}
	found, err := scanWindow(w)
	if err != nil {
		return nil, err
	}
	if found.whole {
		_, _ = io.Copy(io.Discard, w)
	}
	if w.stream.err != nil {
		return nil, w.stream.err
	}
	if !found.whole && len(found.strange) == 0 && !found.apiVersion {
		return nil, errNoAPIVersion
	}
	return newOffsets(found, w.stream.size), nil
}

func scanWindow(w *window) (*layout, error) {
	if startsObject(w) {
		return scanJSON(w)
	}
	s := newScanner()
	if head, _ := w.Peek(len(byteOrderMark)); string(head) == byteOrderMark {
		n, _ := w.Discard(len(byteOrderMark))
		w.at = int64(n)
	}
	s.scan(w)
	return &s.layout, s.fatal
}

const byteOrderMark = "\xef\xbb\xbf"

// startsObject reports whether JSON begins after white space, of which the window has room for a megabyte.
func startsObject(w *window) bool {
	for n := 1; ; n++ {
		head, err := w.Peek(n)
		if err != nil {
			return false
		}
		if c := head[n-1]; !bytes.ContainsRune([]byte(" \t\r\n"), rune(c)) {
			return c == '{'
		}
	}
}

// scan reads lines to the end, or until the scanner needs no more.
func (s *scanner) scan(w *window) {
	for {
		line, long, ok := w.line()
		if !ok {
			break
		}
		more := s.line(line, long)
		for long {
			_, long, _ = w.line()
		}
		if s.at = w.at; !more {
			return
		}
	}
	s.finish(w.at)
}

func newOffsets(found *layout, size int64) *Offsets {
	o := &Offsets{size: size, layout: *found}
	if len(o.strange) == 0 && !o.whole {
		o.sort()
	}
	return o
}

// sort sorts the charts by name for lookups. The regions refer to the order before.
func (o *Offsets) sort() {
	slices.SortFunc(o.charts, func(a, b chart) int { return bytes.Compare(o.name(&a), o.name(&b)) })
}
