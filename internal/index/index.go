// Package index reads a Helm repository's index.yaml, in YAML or JSON, in bounded memory: one pass while it is
// downloaded, and afterwards only the charts that are asked for. It does not know where the bytes come from, and does not
// choose a version.
package index

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/helmsrc/helmsrc/internal/resolve"
)

// The words are Helm's.
var (
	errEmpty        = errors.New("empty index.yaml file")
	errNoAPIVersion = errors.New("no API version specified")
)

// unknownChartError is a chart that is not in the index.
type unknownChartError struct{}

func (unknownChartError) Error() string { return "no chart name found" }
func (unknownChartError) Unwrap() error { return fs.ErrNotExist }

// Offsets says where in an index each chart is. It is made by [Scan].
type Offsets struct {
	size int64

	once   sync.Once
	err    error
	parsed map[string]versions
}

// Check finishes what a single pass cannot do: an index whose syntax Scan did not recognise is read again, with the full
// YAML parser. For all others it costs nothing. Its error is one of the index, as Scan's, or one of reading r, which has
// the bytes that were scanned.
func (o *Offsets) Check(r io.ReaderAt) error {
	o.once.Do(func() { o.err = o.settle(r) })
	return o.err
}

func (o *Offsets) settle(r io.ReaderAt) (err error) {
	o.parsed, err = parseIndex(io.NewSectionReader(r, 0, o.size))
	return err
}

// An Index gives the charts of an index that was scanned. It is safe for use by many goroutines.
type Index struct {
	r       io.ReaderAt
	offsets *Offsets
}

// Open makes an Index of the bytes that were scanned. It does not read anything yet.
func Open(r io.ReaderAt, o *Offsets) *Index { return &Index{r, o} }

// Candidates returns the versions of a chart, in the order of the index, and how many entries were dropped because Helm
// would not accept them. A chart that is not there is an error matching fs.ErrNotExist; one without a single version is
// not an error.
func (i *Index) Candidates(chart string) (c []resolve.Candidate, dropped int, err error) {
	if err := i.offsets.Check(i.r); err != nil {
		return nil, 0, err
	}
	v, ok := i.offsets.parsed[chart]
	if !ok || !v.known {
		return nil, 0, unknownChartError{}
	}
	return v.candidates, v.dropped, nil
}

// Charts returns the names of all charts, sorted.
func (i *Index) Charts() []string {
	if i.offsets.Check(i.r) != nil {
		return nil
	}
	names := slices.Sorted(maps.Keys(i.offsets.parsed))
	return slices.DeleteFunc(names, func(name string) bool { return !i.offsets.parsed[name].known })
}
