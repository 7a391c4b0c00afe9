package index

import (
	"errors"

	"github.com/helmsrc/helmsrc/internal/resolve"
)

// errChanged reports that the index is no longer the one that was scanned.
var errChanged = errors.New("the index has changed since it was scanned")

// A recorder collects the entries of one chart.
type recorder struct {
	reader
	inside  bool // an entry
	out     []resolve.Candidate
	lost    int  // entries that were dropped
	unknown bool // an entry has a string that matters and whose text only the full parser knows
}

// next begins an entry.
func (r *recorder) next() {
	r.finish()
	r.inside = true
}

// finish ends the entry, if there is one.
func (r *recorder) finish() {
	if !r.inside {
		return
	}
	switch c, verdict := r.candidate(); verdict {
	case keep:
		r.out = append(r.out, c)
	case rough:
		r.unknown = true
	case drop:
		r.lost++
	}
	r.reset()
	r.inside = false
}

// roughen makes the last value a string of unknown text, and counts size more bytes of text.
func (r *recorder) roughen(size int) {
	r.grow(size)
	if n := len(r.nodes); n > 0 && !r.full {
		last := &r.nodes[n-1]
		last.kind, last.rough = kindString, true
	}
}

// flow adds a list or mapping in flow style, of simple scalars.
func (r *recorder) flow(k kind, items [][]byte) {
	r.begin(k)
	for _, item := range items {
		if c := item[0]; c == '"' || c == '\'' {
			r.scalar(kindString, item[1:len(item)-1])
		} else {
			r.scalar(plainKind(item), item)
		}
	}
	r.end()
}
