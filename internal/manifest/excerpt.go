package manifest

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/edit"
)

// Excerpt is a line of a file with the part that a finding is about. It never quotes a line that may contain a value
// of a Secret: such an excerpt has the position only.
type Excerpt struct {
	Pos                   Pos
	Before, Marked, After string
}

// maxExcerpt is the length in bytes of the longest line that is quoted. Each finding has its own copy: a list in one
// line would be kept, searched for secrets and printed once for every finding in it.
const maxExcerpt = 4 << 10

// Excerpt returns the line of a field at its Position, in a patch if a patch set the field. Marked is the key, with
// its value if it is on the same line, or the key of the nearest parent if the field does not exist.
func (o *Object) Excerpt(path ...any) Excerpt { return o.find(path, true) }

// find returns the position of a field, and with quoted also its line, which takes time in proportion to the file.
func (o *Object) find(path []any, quoted bool) Excerpt {
	if o.Origin != nil {
		return o.Origin.find(o.originPath(path), quoted)
	}
	if e, ok := o.patched(path); ok {
		return e
	}
	return o.written(path, quoted)
}

// Written returns the line of a field in the file of the object, without regard to patches.
func (o *Object) Written(path ...any) Excerpt { return o.written(path, true) }

func (o *Object) written(path []any, quoted bool) Excerpt {
	if o.Origin != nil {
		return o.Origin.written(o.originPath(path), quoted)
	}
	root, err := o.at.root()
	if err != nil || root == nil {
		return Excerpt{Pos: o.Pos}
	}
	full := append(append(make([]any, 0, len(o.at.path)+len(path)), o.at.path...), path...)
	found, value := locateValue(root, full)
	if found.Kind == 0 {
		text := lineText(o.at.doc.text, found.Line)
		found.Column = 1 + len(text) - len(bytes.TrimLeft(text, " "))
	}
	e := Excerpt{Pos: o.at.doc.pos(found)}
	if !quoted || o.Kind == "Secret" || !o.at.alone(root, o) {
		return e
	}
	return o.at.doc.excerpt(e.Pos, found, value)
}

// alone reports whether the lines of an object belong to no other object. This holds for a document with one object,
// and for a list whose items are below each other. Values of a release and variables of a Kustomization may be
// passwords; they are not quoted from a line with other fields.
func (l location) alone(root *yaml.Node, o *Object) bool {
	if (o.Group() == ReleaseGroup || o.Group() == KustomizeGroup) && hasFlow(locate(root, l.path), root) {
		return false
	}
	if len(l.path) == 0 {
		return true
	}
	if !mentionsSecret(l.doc.text) {
		return true
	}
	_, items := locateValue(root, l.path[:len(l.path)-1])
	return !l.doc.json && items != nil && items.Style&yaml.FlowStyle == 0
}

// hasFlow reports whether an object, or its spec, is written in braces.
func hasFlow(found, root *yaml.Node) bool {
	if found.Kind == yaml.ScalarNode {
		found = root
	}
	spec := resolve(at(found, "spec"))
	return found.Style&yaml.FlowStyle != 0 || spec != nil && spec.Style&yaml.FlowStyle != 0
}

// mentionsSecret reports whether a text may contain an object of kind Secret. A field such as secretRef does not count.
func mentionsSecret(text []byte) bool {
	for i := 0; ; {
		n := bytes.Index(text[i:], []byte("Secret"))
		if n < 0 {
			return false
		}
		if i += n; i == 0 || !isLetter(text[i-1]) {
			return true
		}
		i++
	}
}

// locateValue is locate, and also returns the value if the whole path exists. An index into a block of text selects a
// line of it, returned as a node without a kind.
func locateValue(root *yaml.Node, path []any) (found, value *yaml.Node) {
	found, value = root, root
	for _, step := range path {
		var k, v *yaml.Node
		switch step := step.(type) {
		case string:
			k, v = entry(value, step)
		case int:
			if value.Kind == yaml.ScalarNode && value.Style&yaml.LiteralStyle != 0 {
				return &yaml.Node{Line: value.Line + 1 + step, Column: 1}, nil
			}
			v = element(value, step)
			k = v
		}
		if v == nil {
			return found, nil
		}
		found, value = k, v
	}
	return found, value
}

func (d *document) excerpt(pos Pos, found, value *yaml.Node) Excerpt {
	e := Excerpt{Pos: pos}
	if found.Line == 1 && d.col > 0 {
		return e // the line begins in another document
	}
	text := lineText(d.text, found.Line)
	if len(text) > maxExcerpt {
		return e
	}
	line := string(text)
	start := byteOffset(line, found.Column)
	end := start
	if value != nil && value.Line == found.Line && value.Kind == yaml.ScalarNode {
		from := byteOffset(line, value.Column)
		if n := scalarLength(line[from:], value); n > 0 {
			end = from + n
		}
	}
	if end <= start {
		end = start + keyLength(line[start:])
	}
	e.Before, e.Marked, e.After = line[:start], line[start:end], line[end:]
	return e
}

func byteOffset(line string, column int) int {
	at := 0
	for ; column > 1 && at < len(line); column-- {
		_, n := utf8.DecodeRuneInString(line[at:])
		at += n
	}
	return at
}

// scalarLength returns how many bytes of a line a scalar takes, 0 if that is not known.
func scalarLength(text string, n *yaml.Node) int {
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return edit.QuotedLength(text, '"')
	case n.Style&yaml.SingleQuotedStyle != 0:
		return edit.QuotedLength(text, '\'')
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && n.Value != "" && strings.HasPrefix(text, n.Value):
		return len(n.Value)
	}
	return 0
}

func keyLength(text string) int {
	if text == "" {
		return 0
	}
	if n := edit.QuotedLength(text, '"'); n > 0 {
		return n
	}
	if n := strings.IndexAny(text, ":,{}[] \t"); n > 0 {
		return n
	}
	return min(1, len(text))
}

// lineOf returns the excerpt of a position in a file that cannot be parsed and so has no documents.
func lineOf(pos Pos, data []byte) Excerpt {
	e := Excerpt{Pos: pos}
	if pos.Line == 0 {
		return e
	}
	text, number := data, pos.Line
	for c := range split(data) {
		if c.Line < pos.Line {
			text, number = c.Text, pos.Line-c.Line
		}
	}
	if concealsLine(text, number) {
		return e
	}
	line := string(lineText(text, number))
	if len(line) > maxExcerpt || !utf8.ValidString(line) {
		return e
	}
	start := byteOffset(line, pos.Column)
	e.Before, e.Marked = line[:start], strings.TrimRight(line[start:], " \t")
	return e
}
