package manifest

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/helmsrc/helmsrc/internal/edit"
	"go.yaml.in/yaml/v3"
)

// span is a part of a text, in bytes.
type span struct{ from, to int }

// texts are the parts of a document that are text of quoted and of block scalars, in their order: a # in them begins no
// comment. In a plain scalar it always does.
type texts []span

func (t texts) hold(at int) bool {
	i, exact := slices.BinarySearchFunc(t, at, func(s span, at int) int { return s.from - at })
	return exact || i > 0 && at < t[i-1].to
}

// texts finds them once the tree is there; there are none in what cannot be parsed.
func (d *document) texts() texts {
	root, err := d.root()
	if err != nil || root == nil {
		return nil
	}
	f := &textFinder{text: d.text}
	for at := 0; at < len(d.text); at += edit.LineLength(d.text[at:]) {
		f.lines = append(f.lines, at)
	}
	f.lines = append(f.lines, len(d.text))
	f.visit(root)
	return f.found
}

// textFinder goes through a tree in the order of its text.
type textFinder struct {
	text  []byte
	lines []int // where each begins, and the end
	found texts

	line, column, at int // where the last scalar began
}

func (f *textFinder) visit(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Line > 0 && n.Line < len(f.lines) {
		if s := f.textOf(n); s.to > s.from {
			f.found = append(f.found, s)
		}
	}
	for _, child := range n.Content {
		f.visit(child)
	}
}

func (f *textFinder) textOf(n *yaml.Node) span {
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return f.block(n)
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return f.quoted(n, '"', '\\')
	case n.Style&yaml.SingleQuotedStyle != 0:
		return f.quoted(n, '\'', '\'')
	}
	return span{}
}

// quoted begins at its quote, which may stand behind an anchor and a tag.
func (f *textFinder) quoted(n *yaml.Node, quote, escape byte) span {
	from := f.seek(n)
	skip := bytes.IndexByte(f.text[from:], quote)
	if skip < 0 {
		return span{}
	}
	from += skip
	return span{from, from + quotedLength(f.text[from:], quote, escape)}
}

// seek goes on from the scalar before on the same line, or a long line would be counted again for each.
func (f *textFinder) seek(n *yaml.Node) int {
	if n.Line != f.line || n.Column < f.column {
		f.line, f.column, f.at = n.Line, 1, f.lines[n.Line-1]
	}
	for ; f.column < n.Column && f.at < f.lines[n.Line]; f.column++ {
		_, size := utf8.DecodeRune(f.text[f.at:])
		f.at += size
	}
	return f.at
}

// block goes on as long as lines are indented as the first one is, or as its header says.
func (f *textFinder) block(n *yaml.Node) span {
	s := span{f.lines[n.Line], f.lines[n.Line]}
	if len(bytes.TrimSpace([]byte(n.Value))) == 0 {
		return s
	}
	indent := -1
	for i := n.Line; i+1 < len(f.lines); i++ {
		line := bytes.TrimRight(f.text[f.lines[i]:f.lines[i+1]], " \t\r\n")
		if len(line) == 0 {
			continue
		}
		depth := depthOf(line)
		if indent < 0 {
			indent = min(depth, explicitDepth(f.text[f.lines[n.Line-1]:f.lines[n.Line]], depth))
		}
		if depth < indent {
			break
		}
		s.to = f.lines[i+1]
	}
	return s
}

func depthOf(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " ")) }

// explicitDepth reads the digit of a header such as |2-. The text is that much deeper than what it belongs to, which is
// on this line or deeper.
func explicitDepth(header []byte, otherwise int) int {
	for _, c := range header[bytes.LastIndexAny(header, "|>")+1:] {
		switch {
		case c >= '1' && c <= '9':
			return depthOf(header) + int(c-'0')
		case c != '+' && c != '-':
			return otherwise
		}
	}
	return otherwise
}
