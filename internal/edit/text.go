package edit

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// Piece is the text between two separators of documents. Offset is the offset of its first byte, Line its line, counted from 0.
type Piece struct {
	Text         []byte
	Offset, Line int
}

// Pieces splits a file at the lines that begin with --- or ..., as kubectl does: by lines, before parsing. A --- with content
// after it belongs to the document that it begins. Empty pieces are left out.
func Pieces(data []byte) iter.Seq[Piece] {
	return func(yield func(Piece) bool) {
		start, startLine := 0, 0
		for at, line := 0, 0; at <= len(data); line++ {
			next := at + LineLength(data[at:])
			separates, content := separator(data[at:next])
			if separates || at == len(data) {
				if text := data[start:at]; len(bytes.TrimSpace(text)) > 0 && !yield(Piece{text, start, startLine}) {
					return
				}
				start, startLine = next, line+1
				if content {
					start, startLine = at, line
				}
			}
			at = max(next, at+1)
		}
	}
}

// separator reports whether a line separates documents, and whether the document that it begins has content on it.
func separator(line []byte) (separates, content bool) {
	if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("...")) {
		return false, false
	}
	text := bytes.TrimLeft(line[3:], " \t\r\n")
	separates = len(line) == 3 || len(text) < len(line)-3
	return separates, separates && line[0] == '-' && len(text) > 0 && text[0] != '#'
}

// LineLength returns the length of the first line with its line break, which may be a lone carriage return, as in YAML.
func LineLength(data []byte) int {
	i := bytes.IndexAny(data, "\r\n")
	switch {
	case i < 0:
		return len(data)
	case data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n':
		return i + 2
	}
	return i + 1
}

// broken reports whether a text ends with a line break.
func broken(text []byte) bool {
	return bytes.HasSuffix(text, []byte("\n")) || bytes.HasSuffix(text, []byte("\r"))
}

// breaksOf returns the offsets after the line breaks.
func breaksOf(data []byte) []int {
	found := []int{}
	for at := 0; at < len(data); {
		at += LineLength(data[at:])
		if broken(data[:at]) {
			found = append(found, at)
		}
	}
	return found
}

// yamlBreak returns the length of the line break at the start of data, or 0. The YAML library also counts lines at
// line breaks that editors do not know.
func yamlBreak(data []byte) int {
	switch {
	case len(data) == 0:
		return 0
	case bytes.HasPrefix(data, []byte("\r\n")):
		return 2
	case data[0] == '\r' || data[0] == '\n':
		return 1
	case bytes.HasPrefix(data, []byte("\u0085")):
		return 2
	case bytes.HasPrefix(data, []byte("\u2028")), bytes.HasPrefix(data, []byte("\u2029")):
		return 3
	}
	return 0
}

// position returns the offset of a node in the text of its document, computed from its line and its column in characters.
func (d *Document) position(n *yaml.Node) (int, error) {
	if d.starts == nil {
		d.starts = []int{len(d.text) - len(bytes.TrimPrefix(d.text, []byte("\ufeff")))} // a byte order mark has no column
		for at := d.starts[0]; at < len(d.text); {
			if length := yamlBreak(d.text[at:]); length > 0 {
				at += length
				d.starts = append(d.starts, at)
				continue
			}
			_, size := utf8.DecodeRune(d.text[at:])
			at += size
		}
	}
	if n.Line < 1 || n.Line > len(d.starts) {
		return 0, fmt.Errorf("the position of the value is not known")
	}
	c := cursor{n.Line, 1, d.starts[n.Line-1]}
	if d.last.line == n.Line && d.last.column <= n.Column {
		c = d.last
	}
	for ; c.column < n.Column; c.column++ {
		if c.at >= len(d.text) {
			return 0, fmt.Errorf("the position of the value is not known")
		}
		_, size := utf8.DecodeRune(d.text[c.at:])
		c.at += size
	}
	d.last = c
	return c.at, nil
}

// cursor is a place in a text. It avoids counting the characters of a line again for each of its nodes.
type cursor struct{ line, column, at int }

// span returns the part of the text that holds a scalar, with its quotes, but without its anchor and tag.
func (d *Document) span(n *yaml.Node) (start, end int, err error) {
	at, err := d.position(n)
	if err != nil {
		return 0, 0, err
	}
	for at < len(d.text) && (d.text[at] == '&' || d.text[at] == '!') {
		for at < len(d.text) && !isBlank(d.text[at]) && yamlBreak(d.text[at:]) == 0 {
			at++
		}
		at = skipSpace(d.text, at)
	}
	length := 0
	switch {
	case at >= len(d.text):
	case n.Style&yaml.DoubleQuotedStyle != 0:
		length = QuotedLength(d.text[at:], '"')
	case n.Style&yaml.SingleQuotedStyle != 0:
		length = QuotedLength(d.text[at:], '\'')
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		length = block(d.text[at:], d.depth(at))
	case n.Value == "":
		return 0, 0, fmt.Errorf("there is no value to replace")
	default:
		length = plain(d.text[at:], n.Value)
	}
	if length == 0 {
		return 0, 0, fmt.Errorf("the text of the value was not found")
	}
	return at, at + length, nil
}

// depth returns the indentation of the collection that has the scalar at an offset: of its key, or of the dash of its item.
func (d *Document) depth(at int) int {
	line := d.text[bytes.LastIndexAny(d.text[:at], "\r\n")+1 : at]
	depth := len(line) - len(bytes.TrimLeft(line, " "))
	for bytes.HasPrefix(line[depth:], []byte("- ")) {
		key := len(line) - len(bytes.TrimLeft(line[depth+1:], " "))
		if key == len(line) {
			break
		}
		depth = key
	}
	return depth
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// skipSpace returns the offset after blanks, line breaks and comments.
func skipSpace(text []byte, at int) int {
	for at < len(text) {
		switch length := yamlBreak(text[at:]); {
		case length > 0:
			at += length
		case isBlank(text[at]):
			at++
		case text[at] == '#':
			at += LineLength(text[at:])
		default:
			return at
		}
	}
	return at
}

// QuotedLength returns the length of a quoted scalar up to its closing quote, or of the whole text without one. It returns 0 if the
// text does not begin with the quote. A backslash escapes the next character; in single quotes, a doubled quote is a quote.
func QuotedLength[T string | []byte](text T, quote byte) int {
	if len(text) == 0 || text[0] != quote {
		return 0
	}
	for i := 1; i < len(text); i++ {
		switch {
		case quote == '"' && text[i] == '\\', quote == '\'' && text[i] == quote && i+1 < len(text) && text[i+1] == quote:
			i++
		case text[i] == quote:
			return i + 1
		}
	}
	return len(text)
}

// Span is a part of a text, in bytes.
type Span struct{ From, To int }

// Texts returns the parts of a document that are the text of quoted and of block scalars, in their order. A # in them does not
// begin a comment, while in a plain scalar it always does.
func Texts(text []byte, root *yaml.Node) []Span {
	d := &Document{text: text}
	var found []Span
	Each(root, func(n *yaml.Node) {
		inBlock := n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 && strings.TrimSpace(n.Value) != ""
		if n.Kind == yaml.ScalarNode && (inBlock || n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0) {
			if start, end, err := d.span(n); err == nil {
				if inBlock { // the header may have a comment
					start += LineLength(text[start:])
				}
				found = append(found, Span{start, end})
			}
		}
	})
	return found
}

// block returns the length of the header of a block scalar and its lines with content, without blank lines at its end. A header
// such as |2- states how much deeper the text is than the collection that has it, whose indentation is depth.
func block(text []byte, depth int) int {
	if text[0] != '|' && text[0] != '>' {
		return 0
	}
	end, indent := 0, -1
	deepest := math.MaxInt
	if header := bytes.TrimLeft(text[1:min(3, len(text))], "+-"); len(header) > 0 && header[0] >= '1' && header[0] <= '9' {
		deepest = depth + int(header[0]-'0')
	}
	for at := LineLength(text); at < len(text); {
		line := text[at : at+LineLength(text[at:])]
		content := bytes.TrimLeft(line, " ")
		blank := len(bytes.TrimRight(content, "\r\n\t ")) == 0
		if !blank && indent < 0 {
			indent = min(deepest, len(line)-len(content))
		}
		if !blank && (len(line)-len(content) < indent || indent == 0) {
			break
		}
		at += len(line)
		if !blank {
			end = at - len(line) + len(bytes.TrimRight(line, "\r\n"))
		}
	}
	return end
}

// plain returns the length of a plain scalar, which may have several lines: one line break in the text is a space in the
// value, each further one a line break.
func plain(text []byte, value string) int {
	at := 0
	for len(value) > 0 {
		if at >= len(text) {
			return 0
		}
		space := at
		breaks := 0
		for space < len(text) {
			if length := yamlBreak(text[space:]); length > 0 {
				breaks++
				space += length
			} else if isBlank(text[space]) {
				space++
			} else {
				break
			}
		}
		folded := ""
		switch {
		case breaks == 1:
			folded = " "
		case breaks > 1:
			folded = strings.Repeat("\n", breaks-1)
		case space > at:
			folded = string(text[at:space])
		}
		if folded != "" {
			if !strings.HasPrefix(value, folded) {
				return 0
			}
			value, at = value[len(folded):], space
			continue
		}
		if text[at] != value[0] {
			return 0
		}
		value, at = value[1:], at+1
	}
	return at
}

// render returns the text of a new value in the style of the old one.
func (d *Document) render(n *yaml.Node, value string, start, end int) (string, error) {
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return quoted(value), nil
	case n.Style&yaml.SingleQuotedStyle != 0:
		return "'" + strings.ReplaceAll(value, "'", "''") + "'", nil
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return renderBlock(string(d.text[start:end]), value)
	case n.Style&yaml.TaggedStyle == 0 && !staysText(value):
		return quoted(value), nil
	}
	return value, nil
}

// renderBlock keeps the indicator, the comment after it and the indentation. A value of one line has no line break at its
// end, a value of several lines keeps the end of the block.
func renderBlock(old, value string) (string, error) {
	head := old[:LineLength([]byte(old))]
	line := old[len(head):]
	for strings.TrimSpace(line[:LineLength([]byte(line))]) == "" {
		line = line[LineLength([]byte(line)):]
	}
	indent := strings.Repeat(" ", len(line)-len(strings.TrimLeft(line, " ")))
	switch {
	case value == "" || isBlank(value[0]):
		return "", fmt.Errorf("the new value cannot be written in a block")
	case strings.Contains(value, "\n"):
		return head + renderLines(old[len(head):], value, indent, head[len(strings.TrimRight(head, "\r\n")):]), nil
	}
	rest := strings.TrimLeft(head[1:], "+-0123456789")
	return head[:1] + "-" + rest + indent + value, nil
}

// renderLines keeps unchanged lines, with their blanks and their line breaks.
func renderLines(old, value, indent, ending string) string {
	var out strings.Builder
	lines := strings.SplitAfter(old, "\n")
	for i, text := range strings.Split(strings.TrimRight(value, "\n"), "\n") {
		if i > 0 {
			out.WriteString(ending)
		}
		was := ""
		if i < len(lines) {
			was = strings.TrimRight(lines[i], "\r\n")
		}
		switch {
		case strings.TrimPrefix(was, indent) == text, strings.TrimSpace(was+text) == "":
			out.WriteString(was)
		default:
			out.WriteString(indent + text)
		}
	}
	return out.String()
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func quoted(value string) string { return `"` + escapes.Replace(value) + `"` }

// staysText reports whether a plain scalar is parsed as this string, in YAML 1.1 and 1.2, at any place.
func staysText(value string) bool {
	if strings.ContainsAny(value, ",[]{}") {
		return false
	}
	text, err := yaml.Marshal(value)
	if err != nil || string(text) != value+"\n" {
		return false
	}
	var old map[string]any
	return sigsyaml.Unmarshal([]byte("v: "+value+"\n"), &old) == nil && old["v"] == value
}

// hasControls reports whether a value has characters that cannot be written unescaped, including line breaks.
func hasControls(value string) bool {
	if !utf8.ValidString(value) {
		return true
	}
	return strings.ContainsFunc(value, func(r rune) bool {
		return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r == '\ufeff' || r == '\ufffe'
	})
}
