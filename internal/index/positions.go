package index

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
)

// positionsVersion changes when Scan finds other charts or positions in the same bytes, or judges them differently.
const positionsVersion = 4

// ErrAltered reports that the lines of a chart differ from the lines that its position was made for.
var ErrAltered = errors.New("the index is not the one that the positions of its charts were made for")

// Positions holds the position of each chart in an index, for a later process. [Offsets.Positions] makes it for the bytes
// of one index.
type Positions struct {
	Version int        `json:"version"`
	Size    int64      `json:"size"` // of the index
	JSON    bool       `json:"json,omitempty"`
	Charts  []Position `json:"charts"`
}

// A Position is the position of one chart.
type Position struct {
	Name   string `json:"name"`
	Start  int64  `json:"start"`
	End    int64  `json:"end"`
	Items  uint32 `json:"items,omitempty"`
	Listed listed `json:"listed"`
	Sum    []byte `json:"sum"` // SHA-256 of the bytes from Start to End
}

// Len returns the number of charts that Scan has recognised.
func (o *Offsets) Len() int { return len(o.charts) }

// Positions returns the positions of the charts, with the digests of their lines. It reads the scanned bytes from r, and
// calls [Offsets.Check] first. It returns false for an invalid index, and for an index with a chart that the full parser
// has to read: how long that takes depends on more than the size of the chart.
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

// Offsets returns the offsets that Scan would return for an index of this size, without reading it. It returns false for
// positions of another version, of an index of another size, and for invalid positions. When a chart is read, its lines are
// compared with their digest; [ErrAltered] reports a difference.
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

// intact compares the lines of a chart with their digest, if the digest is known. It returns ErrAltered if they differ.
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
