package index

import (
	"errors"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/resolve"
)

// errChanged is an index that is no longer what was scanned.
var errChanged = errors.New("the index has changed since it was scanned")

// A recorder collects the entries of one chart.
type recorder struct {
	reader
	inside bool // an entry
	out    []resolve.Candidate
	lost   int // entries that were dropped

	r        io.ReaderAt
	base, at int64 // of the chart; of the entry in it
	err      error
}

// next begins an entry at an offset.
func (r *recorder) next(at int64) {
	r.finish(at)
	r.inside, r.at = true, at
}

// finish ends the entry, if there is one.
func (r *recorder) finish(at int64) {
	if !r.inside {
		return
	}
	c, verdict := r.candidate()
	if verdict == rough {
		c, verdict = r.again(at)
	}
	r.take(c, verdict)
	r.reset()
	r.inside = false
}

func (r *recorder) take(c resolve.Candidate, v verdict) {
	if v == keep {
		r.out = append(r.out, c)
	} else {
		r.lost++
	}
}

// again reads the entry with the full parser, which knows the text of everything.
func (r *recorder) again(end int64) (resolve.Candidate, verdict) {
	root, err := parse(io.NewSectionReader(r.r, r.base+r.at, end-r.at))
	if err == nil && (root == nil || root.Kind != yaml.SequenceNode || len(root.Content) != 1) {
		err = errChanged
	}
	if err != nil {
		r.err = err
		return resolve.Candidate{}, drop
	}
	w := &nodeReader{}
	w.fill(root.Content[0])
	return w.candidate()
}

// roughen makes the last value a string whose text is not known.
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
