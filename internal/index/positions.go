package index

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
)

// positionsVersion is another one when Scan begins to see charts elsewhere in the same bytes, or to judge them otherwise.
const positionsVersion = 4

// ErrAltered is a chart whose lines are not those that its position was made for.
var ErrAltered = errors.New("the index is not the one that the positions of its charts were made for")

// Positions say where in an index each chart is, for a later process. They are made by [Offsets.Positions], for the bytes
// with one digest.
type Positions struct {
	Version int        `json:"version"`
	Size    int64      `json:"size"` // of the index
	JSON    bool       `json:"json,omitempty"`
	Charts  []Position `json:"charts"`
}

// A Position is that of one chart.
type Position struct {
	Name   string `json:"name"`
	Start  int64  `json:"start"`
	End    int64  `json:"end"`
	Items  uint32 `json:"items,omitempty"`
	Listed listed `json:"listed"`
	Sum    []byte `json:"sum"` // SHA-256 of the bytes from Start to End
}

// Len returns how many charts there are, as far as Scan has recognised them.
func (o *Offsets) Len() int { return len(o.charts) }

// Positions returns where the charts are, with the digests of their lines: r has the bytes that were scanned, and that have
// passed [Offsets.Check]. It is false for an index of which the full parser reads
// anything: how long that takes depends on more than the size of a chart.
func (o *Offsets) Positions(r io.ReaderAt) (*Positions, bool) {
	if o.Check(r) != nil || o.whole {
		return nil, false
	}
	buffer := make([]byte, 64<<10)
	p := &Positions{Version: positionsVersion, Size: o.size, JSON: o.layout.json, Charts: []Position{}}
	for i := range o.charts {
		c := &o.charts[i]
		if c.strange {
			return nil, false
		}
		sum, err := c.digest(r, buffer)
		if err != nil {
			return nil, false
		}
		p.Charts = append(p.Charts, Position{string(o.name(c)), c.start, c.end, c.items, c.listed, sum})
	}
	return p, true
}

func (c *chart) digest(r io.ReaderAt, buffer []byte) ([]byte, error) {
	h := sha256.New()
	n, err := io.CopyBuffer(h, io.NewSectionReader(r, c.start, c.end-c.start), buffer)
	if err == nil && n != c.end-c.start {
		err = io.ErrUnexpectedEOF
	}
	return h.Sum(nil), err
}

// Offsets returns what Scan would of an index of this size, which is not read. It is false for positions that are not those
// of such an index, or are another version's. The lines of a chart are compared with their digest when they are read, and are
// [ErrAltered] if they differ.
func (p *Positions) Offsets(size int64) (*Offsets, bool) {
	if p.Version != positionsVersion || p.Size != size {
		return nil, false
	}
	o := &Offsets{size: size, layout: layout{apiVersion: true, json: p.JSON}}
	total := int64(0)
	for i, c := range p.Charts {
		inside := c.Start >= 0 && c.Start <= c.End && c.End <= size && int64(c.Items) <= c.End-c.Start
		if !inside || len(c.Sum) != sha256.Size || i > 0 && p.Charts[i-1].Name >= c.Name {
			return nil, false
		}
		// Charts do not overlap: all of them together are no more to read than the index.
		if total += c.End - c.Start; total > size {
			return nil, false
		}
		o.add([]byte(c.Name), chart{start: c.Start, end: c.End, items: c.Items, listed: c.Listed})
		o.sums = append(o.sums, c.Sum)
	}
	return o, true
}

// intact compares the lines of a chart with their digest, if that is known.
func (o *Offsets) intact(r io.ReaderAt, at int) error {
	if o.sums == nil {
		return nil
	}
	sum, err := o.charts[at].digest(r, nil)
	if err == nil && bytes.Equal(sum, o.sums[at]) {
		return nil
	}
	return ErrAltered
}
