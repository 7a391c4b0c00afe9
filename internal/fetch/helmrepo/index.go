package helmrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/index"
)

// An IndexError reports an index that was fetched and cannot be read.
type IndexError struct{ Err error }

func (e *IndexError) Error() string { return e.Err.Error() }

// Finding returns the code of the error behind it, as for an index that is too large, or [finding.InvalidIndex].
func (e *IndexError) Finding() finding.Code {
	return cmp.Or(finding.CodeOf(e.Err), finding.InvalidIndex)
}

func (e *IndexError) Unwrap() error { return e.Err }

// Transient returns false: the server answered, and would send the same answer again.
func (e *IndexError) Transient() bool { return false }

// Index downloads the repository's index into dst, at most limit bytes, and scans it meanwhile. [index.Offsets.Check]
// reports the faults that a single pass cannot find. If the index still has the known tag, the error is [ErrNotModified]. Index
// also returns the tag of the downloaded index.
func (h *Repository) Index(ctx context.Context, dst fetch.Sink, limit int64, known Tag) (*index.Offsets, Tag, error) {
	u := indexURL(h.base)
	var scan indexScan
	var tag Tag
	err := h.operation(ctx, u, func(ctx context.Context, x *exchange) error {
		x.known = known
		err := x.download(ctx, u, dst, limit, tooLargeIndex(limit), scan.consume)
		tag = x.tag
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return scan.offsets, tag, nil
}

func tooLargeIndex(limit int64) error {
	return fetch.NewSizeError(fmt.Sprintf("index exceeds the maximum index file size of %d bytes", limit))
}

// indexScan reads an index while it passes by.
type indexScan struct{ offsets *index.Offsets }

func (s *indexScan) consume(r io.Reader) error {
	beginning := &fetch.Prefix{Limit: fetch.MaxHead}
	offsets, err := index.Scan(io.TeeReader(r, beginning))
	switch {
	case fetch.LooksLikeHTML(beginning.Bytes):
		return &IndexError{finding.WithHint(errWebPage, finding.URLOfIndex)}
	case fetch.LooksLikeGzip(beginning.Bytes):
		return &IndexError{errCompressed}
	case err != nil:
		return &IndexError{err}
	}
	s.offsets = offsets
	return nil
}

// Neither can be an index, and the errors of a YAML parser about them do not help.
var (
	errWebPage    = errors.New("the answer is a web page, not an index")
	errCompressed = errors.New("the answer is a compressed file, although no compression was requested")
)
