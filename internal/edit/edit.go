// Package edit replaces scalars in the text of YAML files. It keeps every byte that is not to change: comments, order,
// quotes, indentation, line endings, a byte order mark. It does no I/O and does not know what the values mean.
package edit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// File is the text of one file, with its pending edits. It belongs to one goroutine.
type File struct {
	data      []byte
	documents []*Document
}

// Document is one YAML document of a file.
type Document struct {
	// Root is the value of the document, nil if it is empty or could not be parsed.
	Root *yaml.Node
	// Err is the reason why the document could not be parsed. Its text is kept.
	Err error

	text    []byte
	offset  int                // of text in the file
	line    int                // of the first byte of text, counted from 0
	starts  []int              // of lines as the YAML library counts them, in text
	last    cursor             // the last result of position
	breaks  []int              // the ends of lines as editors count them, in text
	splices []splice           // sorted by place
	edited  map[*yaml.Node]int // where the splice of a node starts
	instead [][]byte           // the texts of documents that replace it
}

// splice replaces the bytes from start to end, offsets in the text of a document.
type splice struct {
	node       *yaml.Node // a scalar with a new value, or a mapping with new fields
	value      string
	start, end int
	text       string
	fields     *fieldsEdit
}

// Parse parses the documents of a file. It never fails: a document that is not YAML has an Err, and its bytes stay.
// The caller limits the size of data, and must not change it afterwards.
func Parse(data []byte) *File {
	f := &File{data: data}
	for piece := range Pieces(data) {
		d := &Document{text: piece.Text, offset: piece.Offset, line: piece.Line}
		d.Root, d.Err = Only(d.text)
		f.documents = append(f.documents, d)
	}
	return f
}

// Documents returns the documents in the order of the file, without empty ones.
func (f *File) Documents() []*Document { return f.documents }

// LoneReturns returns the number of lines at \n if the file also has a lone carriage return as a line end, so that programs that
// split lines only at \n count other line numbers. It returns 0 for any other file.
func (f *File) LoneReturns() int {
	if bytes.Count(f.data, []byte("\r")) == bytes.Count(f.data, []byte("\r\n")) {
		return 0
	}
	return bytes.Count(f.data, []byte("\n")) + 1
}

// Line returns the line of a node in the file, counted from 1. Lines end as in editors: at \n, \r\n and \r.
func (d *Document) Line(n *yaml.Node) int {
	at, err := d.position(n)
	if err != nil {
		return d.line + n.Line
	}
	return d.lineAt(at)
}

func (d *Document) lineAt(at int) int {
	if d.breaks == nil {
		d.breaks = breaksOf(d.text)
	}
	before, _ := slices.BinarySearch(d.breaks, at+1) // the number of line ends up to it
	return d.line + 1 + before
}

// Lines returns the first and the last line of the document in the file, counted from 1.
func (d *Document) Lines() (first, last int) {
	return d.line + 1, d.lineAt(len(bytes.TrimRight(d.text, "\r\n")))
}

// Comments returns the lines of comments that are on separate lines, by their text: lines in the file, counted from 1, in order.
func (d *Document) Comments() map[string][]int {
	comments := map[string][]int{}
	line := d.line
	for text := range bytes.Lines(d.text) {
		line++
		if text = bytes.TrimSpace(text); bytes.HasPrefix(text, []byte("#")) {
			comments[string(text)] = append(comments[string(text)], line)
		}
	}
	return comments
}

// Only parses a text with at most one document, and returns the value of the document, nil if it is empty.
func Only(text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var root yaml.Node
	if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	// The decoder stops after one document. Text that follows, such as a line with less indentation, would be lost silently.
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("a second document without a separator")
		}
		return nil, err
	}
	if len(root.Content) == 0 {
		return nil, nil
	}
	return root.Content[0], nil
}

// Set changes the value of a scalar, and keeps its quotes; in a literal block, the value may have several lines. A plain scalar
// gets double quotes if its new text would otherwise be parsed as another type. Setting the current value is no edit; of two
// values for one scalar, the last counts.
func (d *Document) Set(n *yaml.Node, value string) error {
	switch {
	case n.Kind == yaml.AliasNode:
		return fmt.Errorf("the value is the alias *%s: edit the value at the anchor &%[1]s", n.Value)
	case n.Kind != yaml.ScalarNode:
		return fmt.Errorf("the value is not a scalar")
	case hasControls(value) && (n.Style&yaml.LiteralStyle == 0 || hasControls(strings.ReplaceAll(value, "\n", ""))):
		return fmt.Errorf("the new value contains control characters")
	}
	d.Keep(n)
	if n.Value == value {
		return nil
	}
	start, end, err := d.span(n)
	if err != nil {
		return err
	}
	text, err := d.render(n, value, start, end)
	if err != nil {
		return err
	}
	d.put(splice{node: n, value: value, start: start, end: end, text: text})
	return nil
}

// Keep drops the pending edits of a node.
func (d *Document) Keep(n *yaml.Node) {
	if i := d.spliceOf(n); i >= 0 {
		d.splices = slices.Delete(d.splices, i, i+1)
		delete(d.edited, n)
	}
}

func (d *Document) spliceOf(n *yaml.Node) int {
	start, ok := d.edited[n]
	if !ok {
		return -1
	}
	i := d.from(start)
	for d.splices[i].node != n {
		i++
	}
	return i
}

// from returns the index of the first splice that starts at an offset or after it.
func (d *Document) from(start int) int {
	i, _ := slices.BinarySearchFunc(d.splices, start, func(s splice, start int) int { return cmp.Compare(s.start, start) })
	return i
}

// Apply returns the text of the file with its edits, and their number. The result differs from the file only in the values
// that were set: an edit that would change more is left out, and is in refusals with the reason.
func (f *File) Apply() (text []byte, edits int, refusals map[*yaml.Node]error) {
	var out bytes.Buffer
	refusals = map[*yaml.Node]error{}
	at, budget := 0, maxReread
	for _, d := range f.documents {
		out.Write(f.data[at:d.offset])
		if d.instead != nil {
			out.Write(joined(d, d.instead))
			at = d.offset + len(d.text)
			edits++
			continue
		}
		splices := d.safeSplices(refusals, &budget)
		out.Write(spliced(d.text, splices))
		at = d.offset + len(d.text)
		edits += len(splices)
	}
	out.Write(f.data[at:])
	return out.Bytes(), edits, refusals
}

// safeSplices leaves out edits that change more than their values. That is rare, so it divides the edits only if they are not
// safe together. The budget is the number of bytes that may be parsed for that, for all documents of a file.
func (d *Document) safeSplices(refusals map[*yaml.Node]error, budget *int) []splice {
	if d.safe(d.splices) {
		return d.splices
	}
	return d.safeAmong(d.splices, nil, refusals, budget)
}

// safeAmong adds the edits to kept that are safe with it. It divides the edits until it has found the unsafe ones.
func (d *Document) safeAmong(edits, kept []splice, refusals map[*yaml.Node]error, budget *int) []splice {
	half := len(edits) / 2
	for _, part := range [][]splice{edits[:half], edits[half:]} {
		with := append(slices.Clone(kept), part...)
		*budget -= len(d.text)
		switch {
		case *budget > 0 && d.safe(with):
			kept = with
		case *budget > 0 && len(part) > 1:
			kept = d.safeAmong(part, kept, refusals, budget)
		default:
			for _, s := range part {
				refusals[s.node] = fmt.Errorf("the value cannot be replaced without changing something else")
				if s.fields != nil {
					refusals[s.node] = fmt.Errorf("the fields cannot be edited without changing something else")
				}
			}
		}
	}
	return kept
}

// maxReread is the limit, in bytes, of the work for a file that is made to be misread.
const maxReread = 16 << 20

func spliced(text []byte, splices []splice) []byte {
	var out bytes.Buffer
	at := 0
	for _, s := range splices {
		out.Write(text[at:s.start])
		out.WriteString(s.text)
		at = s.end
	}
	out.Write(text[at:])
	return out.Bytes()
}

// safe reports whether the edits change exactly their values in the document, and keep its comments. It makes
// mistakes of the rest of this package harmless.
func (d *Document) safe(splices []splice) bool {
	if len(splices) == 0 {
		return true
	}
	edits, commented := map[*yaml.Node][]splice{}, false
	var moved []string
	for i, s := range splices {
		if i > 0 && s.start < splices[i-1].end {
			return false // they overlap
		}
		edits[s.node] = append(edits[s.node], s)
		if s.fields != nil {
			commented, moved = true, append(moved, s.fields.moved...)
		}
	}
	after, err := Only(spliced(d.text, splices))
	if err != nil || after == nil || !equalNodes(expected(d.Root, edits), after) {
		return false
	}
	more := commentsOf(after)
	for line, n := range commentsOf(d.Root) {
		more[line] -= n
	}
	for line, n := range more {
		if n > 0 && !commented || n < 0 && !slices.Contains(moved, line) {
			return false
		}
	}
	return true
}

// Text returns the text of the document, without the separators around it.
func (d *Document) Text() []byte { return bytes.TrimPrefix(d.text, []byte("\ufeff")) }

// Put replaces a document, and all its edits, by one or more documents. The texts have the form of
// [Document.Text]; to keep the document, pass its own text.
func (d *Document) Put(texts ...[]byte) { d.instead = texts }

func joined(d *Document, texts [][]byte) []byte {
	var out bytes.Buffer
	ending := d.ending()
	if bytes.HasPrefix(d.text, []byte("\ufeff")) {
		out.WriteString("\ufeff")
	}
	for i, text := range texts {
		if i == 0 {
			out.Write(text)
			continue
		}
		if !broken(out.Bytes()) {
			out.WriteString(ending)
		}
		if !bytes.HasPrefix(text, []byte("---")) {
			out.WriteString("---" + ending)
		}
		out.Write(text)
	}
	if !broken(d.text) { // the file ends so
		return bytes.TrimRight(out.Bytes(), "\r\n")
	}
	if !broken(out.Bytes()) {
		out.WriteString(ending)
	}
	return out.Bytes()
}
