package index

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

// judgeUncertain checks the parts that Scan did not recognise. If the full parser also reads the lines of a chart, or of another
// top-level key, as one pair of a mapping that another pair could follow, they mean the same inside the whole file: the parser
// comes to them in the same state, and leaves them in the same state. Otherwise the whole file has to be parsed.
func (o *Offsets) judgeUncertain(r io.ReaderAt) error {
	if !o.whole {
		if err := o.judgeRegions(r); err == nil || !errors.Is(err, errNotAlone) {
			return err
		}
	}
	o.layout = layout{whole: true}
	parsed, err := parseIndex(io.NewSectionReader(r, 0, o.size))
	o.parsed = parsed
	return err
}

// errNotAlone reports a region that cannot be read without the rest of the file.
var errNotAlone = errors.New("the region does not stand alone")

// maxRegions is the limit of regions. It bounds the time that the full parser needs to two seconds.
const maxRegions = 100_000

func (o *Offsets) judgeRegions(r io.ReaderAt) error {
	switch {
	case len(o.strange) == 0:
		return nil
	case len(o.strange) > maxRegions:
		return &finding.Problem{
			Text: fmt.Sprintf("more than %d charts are in flow style, or in another that takes long to read", maxRegions), Advice: plainIndex,
		}
	}
	for _, region := range o.strange {
		next := ""
		if region.end < o.size {
			next = strings.Repeat(" ", region.indent) + "next: pair\n"
		}
		value, err := parseRegion(r, region.start, region.end, next)
		if err != nil {
			return err
		}
		if region.chart >= 0 {
			o.charts[region.chart].setEntries(value)
		}
	}
	if !o.apiVersion {
		return errNoAPIVersion
	}
	o.sort()
	return nil
}

func (c *chart) setEntries(value *yaml.Node) {
	value = target(value)
	switch {
	case value.Kind == yaml.SequenceNode:
		c.listed, c.items = listedItems, uint32(len(value.Content))
	case nodeKind(value) == kindNull:
		c.listed = listedNull
	default:
		c.listed = listedNot
	}
}

// parseRegion returns the value of the only key in a region. The parser has to read next, if given, as another pair.
func parseRegion(r io.ReaderAt, start, end int64, next string) (*yaml.Node, error) {
	root, err := parse(io.MultiReader(io.NewSectionReader(r, start, end-start), strings.NewReader(next)))
	nodes := 2
	if next != "" {
		nodes = 4
	}
	if err != nil || root == nil || root.Kind != yaml.MappingNode || len(root.Content) != nodes || isMerge(root.Content[0]) {
		return nil, errNotAlone
	}
	root.Content = root.Content[:2]
	if checkNode(root) != nil {
		return nil, errNotAlone
	}
	return root.Content[1], nil
}

// parsedCandidates reads the versions of a chart with the full parser, and returns how many were dropped.
func parsedCandidates(r io.ReaderAt, c *chart) ([]resolve.Candidate, int, error) {
	value, err := parseRegion(r, c.start, c.end, "")
	if err != nil {
		return nil, 0, errChanged
	}
	w := &nodeReader{}
	v := w.chart(value)
	return v.candidates, v.dropped, cmp.Or(w.err, v.err)
}

// blockCandidates reads the versions of a chart in block style, and returns how many were dropped.
func blockCandidates(r io.ReaderAt, c *chart) ([]resolve.Candidate, int, error) {
	s := newScanner()
	s.record = &recorder{out: make([]resolve.Candidate, 0, c.items)}
	w := newWindow(io.NewSectionReader(r, c.start, c.end-c.start), c.end-c.start+1)
	s.scan(w)
	switch {
	case w.stream.err != nil:
		return nil, 0, w.stream.err
	case s.record.unknown:
		return parsedCandidates(r, c)
	case s.fatal != nil || s.layout.whole || s.mode == modeQuoted:
		return nil, 0, errChanged
	}
	return s.record.out, s.record.lost, nil
}
