package edit

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Field is a field that is to be written: a key, and a text, further fields, or a list of texts
// or of fields.
type Field struct {
	Key     string
	Value   string
	Fields  []Field // that replace Value
	Items   []string
	List    [][]Field
	Comment string // behind the value, with its #
	Literal bool   // the value is a boolean or a number
}

// fieldsEdit is a change of whole fields of one mapping: those that take the place of a key, or stand behind it.
type fieldsEdit struct {
	mapping *yaml.Node
	key     string
	behind  bool // key stays
	fields  []Field
	moved   []string // comments that another document gets
}

// ReplaceField replaces a key and its value by other fields; with none, it removes them. Comments in what goes are
// kept above what comes, except those that moved.
func (d *Document) ReplaceField(mapping *yaml.Node, key string, fields []Field, moved ...string) error {
	i, err := d.editable(mapping, key)
	if err != nil {
		return err
	}
	if anchored(mapping.Content[i]) || anchored(mapping.Content[i+1]) {
		return fmt.Errorf("%s has an anchor that others may refer to", key)
	}
	start, end, err := d.pair(mapping, i)
	if err != nil {
		return err
	}
	e := &fieldsEdit{mapping: mapping, key: key, fields: fields, moved: moved}
	if mapping.Style&yaml.FlowStyle != 0 {
		return d.replaceInFlow(e, i, start, end)
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
	writeFields(&text, fields, indent, ending)
	if len(removed) == len(strings.TrimRight(removed, "\r\n")) { // the last line of a file
		trimmed := strings.TrimSuffix(text.String(), ending)
		text.Reset()
		text.WriteString(trimmed)
	}
	d.add(splice{start: start - len(indent), end: next, text: text.String(), fields: e})
	return nil
}

func (d *Document) replaceInFlow(e *fieldsEdit, i, start, end int) error {
	if len(e.fields) == 0 {
		switch {
		case i+2 < len(e.mapping.Content):
			at, err := d.position(e.mapping.Content[i+2])
			if err != nil {
				return err
			}
			end = at
		case i > 0:
			_, at, err := d.pair(e.mapping, i-2)
			if err != nil {
				return err
			}
			start = at
		}
	}
	d.add(splice{start: start, end: end, text: flowOf(e.fields), fields: e})
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
			return fmt.Errorf("there is a field %s already", f.Key)
		}
	}
	start, end, err := d.pair(mapping, i)
	if err != nil {
		return err
	}
	e := &fieldsEdit{mapping: mapping, key: after, behind: true, fields: fields}
	if mapping.Style&yaml.FlowStyle != 0 {
		d.add(splice{start: end, end: end, text: ", " + flowOf(fields), fields: e})
		return nil
	}
	indent, err := d.indentation(start)
	if err != nil {
		return err
	}
	end += len(bytes.TrimRight(d.text[end:end+LineLength(d.text[end:])], "\r\n"))
	var text strings.Builder
	ending := d.ending()
	writeFields(&text, fields, indent, ending)
	d.add(splice{start: end, end: end, text: ending + strings.TrimSuffix(text.String(), ending), fields: e})
	return nil
}

// editable finds a key of a mapping that nothing else refers to.
func (d *Document) editable(mapping *yaml.Node, key string) (int, error) {
	i := keyIndex(mapping, key)
	switch {
	case i < 0:
		return 0, fmt.Errorf("there is no field %s: an alias or something else puts it in", key)
	case aliased(d.Root, mapping):
		return 0, fmt.Errorf("an alias refers to the place of %s", key)
	}
	return i, nil
}

// aliased reports whether a node is in something that an alias stands for.
func aliased(root, n *yaml.Node) bool {
	names := map[string]bool{}
	each(root, func(at *yaml.Node) {
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

// endOf is the offset behind the text of a value.
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

// begins reports whether a quote opens a scalar: inside of a plain one it is a character like others.
func begins(text []byte, at int) bool {
	before := bytes.TrimRight(text[:at], " \t\r\n")
	return len(before) == 0 || bytes.IndexByte([]byte("{[,:"), before[len(before)-1]) >= 0
}

func isSpace(c byte) bool { return isBlank(c) || c == '\r' || c == '\n' }

// indentation is what stands before a key on its line.
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

// Render is the text of a document of fields, in block style.
func Render(fields []Field, like []byte) []byte {
	d := &Document{text: like}
	if len(like) == 0 {
		d.text = []byte("\n")
	}
	var text strings.Builder
	writeFields(&text, fields, "", d.ending())
	return []byte(text.String())
}

func writeFields(w *strings.Builder, fields []Field, indent, ending string) {
	for _, f := range fields {
		w.WriteString(indent + scalarOf(Field{Value: f.Key}) + ":")
		if f.Fields == nil && f.Items == nil && f.List == nil {
			w.WriteString(" " + scalarOf(f))
		}
		if f.Comment != "" {
			w.WriteString(" " + f.Comment)
		}
		w.WriteString(ending)
		writeFields(w, f.Fields, indent+"  ", ending)
		for _, item := range f.Items {
			w.WriteString(indent + "- " + scalarOf(Field{Value: item}) + ending)
		}
		for _, item := range f.List {
			var text strings.Builder
			writeFields(&text, item, indent+"  ", ending)
			w.WriteString(indent + "- " + strings.TrimPrefix(text.String(), indent+"  "))
		}
	}
}

func flowOf(fields []Field) string {
	var parts []string
	for _, f := range fields {
		text := scalarOf(f)
		if f.Fields != nil {
			text = "{" + flowOf(f.Fields) + "}"
		}
		if f.Items != nil {
			var items []string
			for _, item := range f.Items {
				items = append(items, scalarOf(Field{Value: item}))
			}
			text = "[" + strings.Join(items, ", ") + "]"
		}
		if f.List != nil {
			var items []string
			for _, item := range f.List {
				items = append(items, "{"+flowOf(item)+"}")
			}
			text = "[" + strings.Join(items, ", ") + "]"
		}
		parts = append(parts, scalarOf(Field{Value: f.Key})+": "+text)
	}
	return strings.Join(parts, ", ")
}

func scalarOf(f Field) string {
	if f.Literal || staysText(f.Value) {
		return f.Value
	}
	return quoted(f.Value)
}

// add adds an edit in the order of the text.
func (d *Document) add(s splice) {
	at := 0
	for at < len(d.splices) && d.splices[at].start <= s.start {
		at++
	}
	d.splices = slices.Insert(d.splices, at, s)
}

// whole reports whether edits of whole fields are among those of a document.
func whole(splices []splice) bool {
	return slices.ContainsFunc(splices, func(s splice) bool { return s.fields != nil })
}

// asExpected reports whether a document with edits of whole fields is what they ask for, and has no comment less.
func (d *Document) asExpected(splices []splice) bool {
	for i := 1; i < len(splices); i++ {
		if splices[i].start < splices[i-1].end {
			return false // they overlap
		}
	}
	after, err := parse(spliced(d.text, splices))
	if err != nil || after == nil || !alike(expected(d.Root, splices), after) {
		return false
	}
	left := commentsOf(after)
	var moved []string
	for _, s := range splices {
		if s.fields != nil {
			moved = append(moved, s.fields.moved...)
		}
	}
	for line, n := range commentsOf(d.Root) {
		if left[line] < n && !slices.Contains(moved, line) {
			return false
		}
	}
	return true
}

func commentsOf(root *yaml.Node) map[string]int {
	counts := map[string]int{}
	each(root, func(n *yaml.Node) {
		for _, text := range []string{n.HeadComment, n.LineComment, n.FootComment} {
			for _, line := range commentLines(text) {
				counts[line]++
			}
		}
	})
	return counts
}

// each visits the nodes of a tree in the order of the text. Aliases are not followed.
func each(n *yaml.Node, visit func(*yaml.Node)) {
	visit(n)
	for _, child := range n.Content {
		each(child, visit)
	}
}

// expected is a document with edits, as nodes.
func expected(n *yaml.Node, splices []splice) *yaml.Node {
	out := &yaml.Node{Kind: n.Kind, Tag: n.ShortTag(), Value: n.Value, Anchor: n.Anchor}
	for _, s := range splices {
		if s.fields == nil && s.node == n && n.Kind == yaml.ScalarNode {
			out.Value, out.Tag = s.value, "!!str"
		}
	}
	if n.Kind != yaml.MappingNode {
		for _, c := range n.Content {
			out.Content = append(out.Content, expected(c, splices))
		}
		return out
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		pair := []*yaml.Node{expected(n.Content[i], splices), expected(n.Content[i+1], splices)}
		for _, s := range splices {
			if e := s.fields; e != nil && e.mapping == n && e.key == n.Content[i].Value {
				if !e.behind {
					pair = nil
				}
				pair = append(pair, nodesOf(e.fields)...)
			}
		}
		out.Content = append(out.Content, pair...)
	}
	return out
}

func nodesOf(fields []Field) []*yaml.Node {
	var list []*yaml.Node
	scalar := func(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text} }
	for _, f := range fields {
		value := scalar(f.Value)
		switch {
		case f.Fields != nil:
			value = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: nodesOf(f.Fields)}
		case f.Items != nil:
			value = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
			for _, item := range f.Items {
				value.Content = append(value.Content, scalar(item))
			}
		case f.List != nil:
			value = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
			for _, item := range f.List {
				value.Content = append(value.Content, &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: nodesOf(item)})
			}
		case f.Literal:
			value.Tag = ""
		}
		list = append(list, scalar(f.Key), value)
	}
	return list
}

func alike(want, got *yaml.Node) bool {
	if want.Kind != got.Kind || want.Value != got.Value || want.Anchor != got.Anchor || len(want.Content) != len(got.Content) {
		return false
	}
	if want.Kind == yaml.ScalarNode && want.Tag != "" && want.Tag != got.ShortTag() {
		return false
	}
	for i := range want.Content {
		if !alike(want.Content[i], got.Content[i]) {
			return false
		}
	}
	return true
}
