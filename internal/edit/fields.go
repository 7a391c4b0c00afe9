package edit

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Field is a field to write: a key, with a text, further fields, a list of texts, or a list
// of fields.
type Field struct {
	Key     string
	Value   string
	Fields  []Field // instead of Value
	Items   []string
	List    [][]Field
	Comment string // after the value, with its #
	Literal bool   // the value is a boolean or a number
}

// fieldsEdit is a change of whole fields of one mapping: they replace a key, or are inserted after it.
type fieldsEdit struct {
	key    string
	behind bool // key stays
	fields []Field
	moved  []string // comments that move to another document
}

// ReplaceField replaces a key and its value by other fields; without fields, it removes them. Comments of the removed part are
// kept above the new fields, except moved ones.
func (d *Document) ReplaceField(mapping *yaml.Node, key string, fields []Field, moved ...string) error {
	i, err := d.editable(mapping, key)
	if err != nil {
		return err
	}
	if anchored(mapping.Content[i]) || anchored(mapping.Content[i+1]) {
		return fmt.Errorf("%s has an anchor that aliases may refer to", key)
	}
	start, end, err := d.pair(mapping, i)
	if err != nil {
		return err
	}
	e := &fieldsEdit{key: key, fields: fields, moved: moved}
	if mapping.Style&yaml.FlowStyle != 0 {
		return d.replaceInFlow(mapping, e, i, start, end)
	}
	indent, err := d.indentation(start)
	if err != nil {
		return err
	}
	next := end + LineLength(d.text[end:])
	removed := string(d.text[start:next])
	ending := d.ending()
	var text strings.Builder
	for _, comment := range lostComments(mapping.Content[i], mapping.Content[i+1], removed, fields, moved) {
		text.WriteString(indent + comment + ending)
	}
	text.WriteString(blockOf(fields, indent, ending))
	if len(removed) == len(strings.TrimRight(removed, "\r\n")) { // the last line of a file
		trimmed := strings.TrimSuffix(text.String(), ending)
		text.Reset()
		text.WriteString(trimmed)
	}
	d.put(splice{node: mapping, start: start - len(indent), end: next, text: text.String(), fields: e})
	return nil
}

func (d *Document) replaceInFlow(mapping *yaml.Node, e *fieldsEdit, i, start, end int) error {
	if len(e.fields) == 0 {
		switch {
		case i+2 < len(mapping.Content):
			at, err := d.position(mapping.Content[i+2])
			if err != nil {
				return err
			}
			end = at
		case i > 0:
			_, at, err := d.pair(mapping, i-2)
			if err != nil {
				return err
			}
			start = at
		}
	}
	d.put(splice{node: mapping, start: start, end: end, text: flowOf(e.fields), fields: e})
	return nil
}

// InsertFields adds fields after a key of a mapping.
func (d *Document) InsertFields(mapping *yaml.Node, after string, fields []Field) error {
	i, err := d.editable(mapping, after)
	if err != nil {
		return err
	}
	for _, f := range fields {
		if keyIndex(mapping, f.Key) >= 0 {
			return fmt.Errorf("the field %s exists already", f.Key)
		}
	}
	start, end, err := d.pair(mapping, i)
	if err != nil {
		return err
	}
	e := &fieldsEdit{key: after, behind: true, fields: fields}
	if mapping.Style&yaml.FlowStyle != 0 {
		d.put(splice{node: mapping, start: end, end: end, text: ", " + flowOf(fields), fields: e})
		return nil
	}
	indent, err := d.indentation(start)
	if err != nil {
		return err
	}
	end += len(bytes.TrimRight(d.text[end:end+LineLength(d.text[end:])], "\r\n"))
	ending := d.ending()
	d.put(splice{node: mapping, start: end, end: end, text: ending + strings.TrimSuffix(blockOf(fields, indent, ending), ending), fields: e})
	return nil
}

// editable returns the index of a key of a mapping to which no alias refers.
func (d *Document) editable(mapping *yaml.Node, key string) (int, error) {
	i := keyIndex(mapping, key)
	switch {
	case i < 0:
		return 0, fmt.Errorf("there is no field %s: it comes from an alias or another place", key)
	case aliased(d.Root, mapping):
		return 0, fmt.Errorf("an alias refers to the place of %s", key)
	}
	return i, nil
}

// aliased reports whether a node is inside of a node to which an alias refers.
func aliased(root, n *yaml.Node) bool {
	names := map[string]bool{}
	Each(root, func(at *yaml.Node) {
		if at.Kind == yaml.AliasNode {
			names[at.Value] = true
		}
	})
	if len(names) == 0 {
		return false
	}
	var find func(at *yaml.Node, in bool) bool
	find = func(at *yaml.Node, in bool) bool {
		in = in || at.Anchor != "" && names[at.Anchor]
		if at == n {
			return in
		}
		return at.Kind != yaml.AliasNode && slices.ContainsFunc(at.Content, func(c *yaml.Node) bool { return find(c, in) })
	}
	return find(root, false)
}

func anchored(n *yaml.Node) bool {
	return n.Anchor != "" || n.Kind != yaml.AliasNode && slices.ContainsFunc(n.Content, anchored)
}

func (d *Document) pair(mapping *yaml.Node, i int) (start, end int, err error) {
	key, value := mapping.Content[i], mapping.Content[i+1]
	if start, err = d.position(key); err != nil {
		return 0, 0, err
	}
	end, err = d.endOfPair(key, value)
	return start, end, err
}

func (d *Document) endOfPair(key, value *yaml.Node) (int, error) {
	if value.Kind != yaml.ScalarNode || value.Value != "" || value.Style&^yaml.TaggedStyle != 0 {
		return d.endOf(value)
	}
	_, end, err := d.span(key)
	if err != nil {
		return 0, err
	}
	colon := bytes.IndexByte(d.text[end:], ':')
	if colon < 0 {
		return 0, fmt.Errorf("the text of the value was not found")
	}
	return end + colon + 1, nil
}

// endOf returns the offset after the text of a value.
func (d *Document) endOf(n *yaml.Node) (int, error) {
	switch {
	case n.Kind == yaml.ScalarNode:
		_, end, err := d.span(n)
		return end, err
	case n.Kind == yaml.AliasNode:
		at, err := d.position(n)
		return at + 1 + len(n.Value), err
	case n.Style&yaml.FlowStyle != 0 || len(n.Content) == 0:
		return d.endOfFlow(n)
	case n.Kind == yaml.MappingNode:
		return d.endOfPair(n.Content[len(n.Content)-2], n.Content[len(n.Content)-1])
	}
	return d.endOf(n.Content[len(n.Content)-1])
}

func (d *Document) endOfFlow(n *yaml.Node) (int, error) {
	at, err := d.position(n)
	if err != nil {
		return 0, err
	}
	for at < len(d.text) && d.text[at] != '{' && d.text[at] != '[' {
		at++
	}
	for depth := 0; at < len(d.text); at++ {
		length := 0
		switch c := d.text[at]; {
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return at + 1, nil
			}
		case (c == '"' || c == '\'') && begins(d.text, at):
			length = QuotedLength(d.text[at:], c)
		case c == '#' && isSpace(d.text[at-1]):
			length = LineLength(d.text[at:])
		}
		at += max(0, length-1)
	}
	return 0, fmt.Errorf("the end of the value was not found")
}

// begins reports whether a quote opens a scalar: inside of a plain scalar, it is an ordinary character.
func begins(text []byte, at int) bool {
	before := bytes.TrimRight(text[:at], " \t\r\n")
	return len(before) == 0 || bytes.IndexByte([]byte("{[,:"), before[len(before)-1]) >= 0
}

func isSpace(c byte) bool { return isBlank(c) || c == '\r' || c == '\n' }

// indentation returns the blanks before a key on its line, or an error if the key does not begin its line.
func (d *Document) indentation(start int) (string, error) {
	indent := d.text[bytes.LastIndexAny(d.text[:start], "\r\n")+1 : start]
	if len(bytes.Trim(indent, " ")) > 0 {
		return "", fmt.Errorf("the key does not begin its line")
	}
	return string(indent), nil
}

func (d *Document) ending() string {
	length := LineLength(d.text)
	line := d.text[:length]
	if ending := line[len(bytes.TrimRight(line, "\r\n")):]; len(ending) > 0 {
		return string(ending)
	}
	return "\n"
}

func lostComments(key, value *yaml.Node, removed string, fields []Field, moved []string) []string {
	kept := slices.Clone(moved)
	var collectKept func([]Field)
	collectKept = func(fields []Field) {
		for _, f := range fields {
			kept = append(kept, f.Comment)
			collectKept(f.Fields)
		}
	}
	collectKept(fields)
	var lost []string
	add := func(text string) {
		for _, line := range commentLines(text) {
			if strings.Contains(removed, line) && !slices.Contains(kept, line) {
				lost = append(lost, line)
			}
		}
	}
	add(key.LineComment)
	var visit func(*yaml.Node)
	visit = func(n *yaml.Node) {
		add(n.HeadComment)
		add(n.LineComment)
		for _, c := range n.Content {
			visit(c)
		}
		add(n.FootComment)
	}
	visit(value)
	add(key.FootComment)
	return lost
}

func commentLines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// Render returns the text of a document with fields, in block style, with the line endings of like.
func Render(fields []Field, like []byte) []byte {
	d := &Document{text: like}
	if len(like) == 0 {
		d.text = []byte("\n")
	}
	return []byte(blockOf(fields, "", d.ending()))
}

// blockOf returns the text of fields in block style.
func blockOf(fields []Field, indent, ending string) string {
	var text strings.Builder
	for line := range strings.Lines(encoded(nodesOf(fields, false), 0)) {
		text.WriteString(indent + strings.TrimSuffix(line, "\n") + ending)
	}
	return text.String()
}

// flowOf returns the text of fields in flow style, without the braces.
func flowOf(fields []Field) string {
	return strings.TrimSuffix(strings.TrimPrefix(encoded(nodesOf(fields, true), yaml.FlowStyle), "{"), "}\n")
}

// encoded returns the text of a mapping, "" if it is empty or cannot be encoded: then no edit is safe.
func encoded(content []*yaml.Node, style yaml.Style) string {
	var text bytes.Buffer
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	e.CompactSeqIndent()
	if len(content) == 0 || e.Encode(&yaml.Node{Kind: yaml.MappingNode, Content: content, Style: style}) != nil || e.Close() != nil {
		return ""
	}
	return text.String()
}

func commentsOf(root *yaml.Node) map[string]int {
	counts := map[string]int{}
	Each(root, func(n *yaml.Node) {
		for _, text := range []string{n.HeadComment, n.LineComment, n.FootComment} {
			for _, line := range commentLines(text) {
				counts[line]++
			}
		}
	})
	return counts
}

// Each visits the nodes of a tree, which may be nil, in the order of the text. It does not follow aliases.
func Each(n *yaml.Node, visit func(*yaml.Node)) {
	if n == nil {
		return
	}
	visit(n)
	for _, child := range n.Content {
		Each(child, visit)
	}
}

// expected returns the nodes of a document after the edits.
func expected(n *yaml.Node, edits map[*yaml.Node][]splice) *yaml.Node {
	out := &yaml.Node{Kind: n.Kind, Value: n.Value, Anchor: n.Anchor}
	if n.Kind != yaml.AliasNode {
		out.Tag = n.ShortTag()
	}
	for _, s := range edits[n] {
		if s.fields != nil {
			continue
		}
		if out.Value = s.value; n.Style&yaml.TaggedStyle == 0 {
			out.Tag = "!!str"
		}
	}
	for i, part := range n.Content {
		out.Content = append(out.Content, expected(part, edits))
		if n.Kind != yaml.MappingNode || i%2 == 0 {
			continue
		}
		for _, s := range edits[n] {
			if s.fields.key != n.Content[i-1].Value {
				continue
			}
			if !s.fields.behind {
				out.Content = out.Content[:len(out.Content)-2]
			}
			out.Content = append(out.Content, nodesOf(s.fields.fields, false)...)
		}
	}
	return out
}

// nodesOf returns fields as the content of a mapping. In flow style, they have no comments.
func nodesOf(fields []Field, flow bool) []*yaml.Node {
	var list []*yaml.Node
	scalar := func(text string) *yaml.Node {
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
		if !staysText(text) {
			n.Style = yaml.DoubleQuotedStyle
		}
		return n
	}
	for _, f := range fields {
		key, value := scalar(f.Key), scalar(f.Value)
		commented := key
		switch {
		case f.Fields != nil:
			value = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: nodesOf(f.Fields, flow)}
		case f.Items != nil:
			value = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
			for _, item := range f.Items {
				value.Content = append(value.Content, scalar(item))
			}
		case f.List != nil:
			value = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
			for _, item := range f.List {
				value.Content = append(value.Content, &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: nodesOf(item, flow)})
			}
		case f.Literal:
			value.Tag, value.Style = "", 0
			fallthrough
		default:
			commented = value
		}
		if !flow {
			commented.LineComment = f.Comment
		}
		list = append(list, key, value)
	}
	return list
}

func equalNodes(want, got *yaml.Node) bool {
	if want.Kind != got.Kind || want.Value != got.Value || want.Anchor != got.Anchor || len(want.Content) != len(got.Content) {
		return false
	}
	if want.Tag != "" && want.Tag != got.ShortTag() {
		return false
	}
	for i := range want.Content {
		if !equalNodes(want.Content[i], got.Content[i]) {
			return false
		}
	}
	return true
}
