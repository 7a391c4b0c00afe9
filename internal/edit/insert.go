package edit

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Quote quotes a plain scalar that is parsed as a number, a boolean or a date. Its text stays.
func (d *Document) Quote(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode || n.Style != 0 || n.ShortTag() == "!!str" || n.ShortTag() == "!!null" {
		return fmt.Errorf("the value needs no quotes")
	}
	start, end, err := d.span(n)
	if err != nil {
		return err
	}
	d.Keep(n)
	d.put(splice{node: n, value: n.Value, start: start, end: end, text: quoted(n.Value)})
	return nil
}

func keyIndex(mapping *yaml.Node, key string) int {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// put adds an edit in the order of the text.
func (d *Document) put(s splice) {
	if d.edited == nil {
		d.edited = map[*yaml.Node]int{}
	}
	d.edited[s.node] = s.start
	d.splices = slices.Insert(d.splices, d.from(s.start+1), s)
}

// Region is a part of one line of a file, and its new text. Lines and columns count from 1, columns in characters.
type Region struct {
	Line, Column, EndColumn int
	Text                    string
}

// Region returns the pending edit of a node. It returns false without an edit, or if the edit spans several lines.
func (d *Document) Region(n *yaml.Node) (Region, bool) {
	i := d.spliceOf(n)
	if i < 0 || bytes.ContainsAny(d.text[d.splices[i].start:d.splices[i].end], "\r\n") {
		return Region{}, false
	}
	s := d.splices[i]
	begin := bytes.LastIndexAny(d.text[:s.start], "\r\n") + 1
	head := bytes.TrimPrefix(d.text[begin:s.start], []byte("\ufeff"))
	column := 1 + utf8.RuneCount(head)
	return Region{d.lineAt(s.start), column, column + utf8.RuneCount(d.text[s.start:s.end]), s.text}, true
}
