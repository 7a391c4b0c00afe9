// Package index reads a Helm repository's index.yaml, in YAML or JSON, in bounded memory: one pass while it is
// downloaded, and afterwards only the charts that are needed. It does not know where the bytes come from, and does not
// choose a version.
package index

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"slices"
	"sync"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

// The first two messages are Helm's.
var (
	errEmpty        = errors.New("empty index.yaml file")
	errNoAPIVersion = errors.New("no API version specified")
	errUnknownChart = &finding.Problem{Text: "no chart name found", Err: fs.ErrNotExist}
)

// Offsets holds the position of each chart in an index. [Scan] returns it.
type Offsets struct {
	layout
	size int64
	sums [][]byte // of the bytes of each chart, if the positions are an earlier process's

	once   sync.Once
	err    error
	parsed map[string]versions // of an index that was read by the full parser
}

// Check reads syntax that Scan did not recognise again, with the full YAML parser. It costs nothing if Scan recognised the
// whole index. The error is one of the index, as Scan's, or one of reading r, which has the bytes that were scanned. Many
// goroutines may call it at once.
func (o *Offsets) Check(r io.ReaderAt) error {
	o.once.Do(func() { o.err = o.judgeUncertain(r) })
	return o.err
}

// An Index returns the charts of a scanned index. It reads from the file with every call. Many goroutines may use it at
// once.
type Index struct {
	r       io.ReaderAt
	offsets *Offsets
}

// Open makes an Index of the bytes that were scanned. It does not read anything yet.
func Open(r io.ReaderAt, o *Offsets) *Index { return &Index{r, o} }

// Candidates returns the versions of a chart, in the order of the index, and how many entries were dropped because Helm
// would not accept them. A missing chart is an error matching fs.ErrNotExist; a chart without versions is not an error.
func (i *Index) Candidates(chart string) (c []resolve.Candidate, dropped int, err error) {
	if err := i.offsets.Check(i.r); err != nil {
		return nil, 0, err
	}
	if i.offsets.whole {
		v := i.offsets.parsed[chart]
		if !v.known {
			return nil, 0, errUnknownChart
		}
		return slices.Clone(v.candidates), v.dropped, v.err
	}
	found, at := i.offsets.lookup(chart)
	switch {
	case found == nil || found.listed == listedNot:
		return nil, 0, errUnknownChart
	case found.listed == listedNull || found.items == 0:
		return nil, 0, nil
	case found.items > maxVersions:
		return nil, 0, errTooManyVersions
	}
	if err := i.offsets.intact(i.r, at); err != nil {
		return nil, 0, err
	}
	switch {
	case found.strange:
		return parsedCandidates(i.r, found)
	case i.offsets.layout.json:
		return jsonCandidates(i.r, found)
	}
	return blockCandidates(i.r, found)
}

// Charts returns the names of all charts, sorted.
func (i *Index) Charts() []string {
	if i.offsets.Check(i.r) != nil {
		return nil
	}
	var names []string
	for name, v := range i.offsets.parsed {
		if v.known {
			names = append(names, name)
		}
	}
	for at := range i.offsets.charts {
		if c := &i.offsets.charts[at]; c.listed != listedNot {
			names = append(names, string(i.offsets.name(c)))
		}
	}
	slices.Sort(names)
	return names
}

// lookup returns a chart, and its place among the charts.
func (o *Offsets) lookup(name string) (*chart, int) {
	at, ok := slices.BinarySearchFunc(o.charts, []byte(name), func(c chart, name []byte) int { return bytes.Compare(o.name(&c), name) })
	if !ok {
		return nil, 0
	}
	return &o.charts[at], at
}
