package manifest

import (
	"bytes"
	"iter"
	"strings"
	"sync"
	"weak"

	"go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/bound"
	"github.com/helmsrc/helmsrc/internal/edit"
	"github.com/helmsrc/helmsrc/internal/finding"
)

const (
	// maxDepth bounds nesting. Real objects stay below 30, CRDs below 100.
	maxDepth = 1000

	// maxExpansion is the limit of the expanded aliases of a document, in bytes and values together.
	maxExpansion = 8 << 20

	// maxSurplus is the limit of the expanded aliases of all documents together, beyond the length of their text.
	maxSurplus = 4 * maxExpansion
)

// document is one YAML or JSON document. It keeps its text. The tree of a small document is not kept, because it
// takes a few times as much memory and positions are needed only for findings.
type document struct {
	file      string
	text      []byte
	line, col int // position of the first byte, counted from 0
	json      bool
	whole     []byte // the text of the file
	index     int    // of the document in it

	trees sync.Mutex
	read  weak.Pointer[yaml.Node] // the tree parsed last, until the garbage collector frees it
	large *parsed                 // the tree of a large document, which is expensive to parse twice

	// ignores returns the helmsrc:ignore comments of all objects in the document. It reads them on first use.
	ignores func() []finding.Ignore

	early            *parsed // nil if it was not read ahead
	checked, decoded bool
	checkErr, err    error
	surplus          int // how much expanded aliases make the document larger than its text
	value            any
}

// documents cuts a piece of a stream into documents. A piece of YAML is one document; JSON values may follow each other.
func documents(file string, c edit.Piece) iter.Seq[*document] {
	text, line := c.Text, c.Line
	text = bytes.TrimPrefix(text, bomUTF8)
	values := jsonStream(text)
	if values == nil {
		return func(yield func(*document) bool) { yield(newDocument(file, text, line, 0, false)) }
	}
	return func(yield func(*document) bool) {
		for _, v := range values {
			p := offsetPos(file, text, v.offset)
			if !yield(newDocument(file, v.text, line+p.Line-1, p.Column-1, true)) {
				return
			}
		}
	}
}

func newDocument(file string, text []byte, line, col int, isJSON bool) *document {
	d := &document{file: file, text: text, line: line, col: col, json: isJSON}
	d.ignores = sync.OnceValue(d.readIgnores)
	return d
}

func (d *document) pos(n *yaml.Node) Pos {
	p := Pos{File: d.file, Line: d.line + n.Line, Column: n.Column}
	if n.Line == 1 {
		p.Column += d.col
	}
	return p
}

func (d *document) errorAt(n *yaml.Node, msg string) *ParseError {
	return &ParseError{Pos: d.pos(n), Msg: msg}
}

// root returns the tree with positions. It parses the document again if the tree was freed.
func (d *document) root() (*yaml.Node, error) {
	d.trees.Lock()
	defer d.trees.Unlock()
	if d.large != nil {
		return d.large.tree, d.large.err
	}
	if tree := d.read.Value(); tree != nil {
		return tree, nil
	}
	tree, err := d.parse()
	if d.read = weak.Make(tree); len(d.text) > smallDocument {
		d.large = &parsed{tree, err}
	}
	return tree, err
}

// parse reads the tree. A null document has no root.
func (d *document) parse() (*yaml.Node, error) {
	if err := bound.Check(d.text); err != nil {
		return nil, d.errorAt(&yaml.Node{Line: 1, Column: 1}, err.Error())
	}
	if d.json {
		return jsonTree(d.text)
	}
	root, err := edit.Only(d.text)
	if err != nil {
		return nil, d.syntaxError(err)
	}
	return root, nil
}

// object returns the object at a path of the document, in the types of JSON.
func (d *document) object(tree *yaml.Node, path []any) (map[string]any, error) {
	if !d.decoded {
		d.decoded = true
		if d.err = d.check(tree); d.err == nil {
			d.value, d.err = d.decode(tree)
		}
	}
	m, ok := ValueAt(d.value, path).(map[string]any)
	if !ok && d.err == nil {
		return nil, d.errorAt(tree, "cannot be read as YAML 1.1")
	}
	return m, d.err
}

// decode reads the values as kubectl does: YAML 1.1 in the reading of sigs.k8s.io/yaml, whole numbers as int64.
func (d *document) decode(tree *yaml.Node) (any, error) {
	text := d.text
	if !d.json {
		var err error
		if text, err = sigsyaml.YAMLToJSON(d.text); err != nil {
			return nil, d.valueError(tree, err)
		}
	}
	var v any
	if err := utiljson.Unmarshal(text, &v); err != nil {
		return nil, d.valueError(tree, err)
	}
	return v, nil
}

// valueError returns the error of well-formed text that has no equivalent in JSON, such as .nan or a list as a key.
func (d *document) valueError(tree *yaml.Node, err error) error {
	e := d.errorAt(tree, plainMessage(err))
	if bad := unsupported(tree); bad != nil {
		e.Pos, e.Msg = d.pos(bad), "not possible in JSON: "+kindOfValue(bad)
	}
	e.hint = templateHint(d.text)
	return e
}

func kindOfValue(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a map as a key"
	case n.Kind == yaml.SequenceNode:
		return "a list as a key"
	case isNull(n):
		return "null as a key"
	}
	return n.Value
}

// plainMessage returns the message of a library's error without the library's names, line number and quoted text.
func plainMessage(err error) string { return trimmedMessage(unquoted(err).Error()) }

func trimmedMessage(msg string) string {
	for _, noise := range []string{"error converting YAML to JSON: ", "yaml: ", "unmarshal errors:\n  ", "json: "} {
		msg = strings.TrimPrefix(msg, noise)
	}
	if rest, ok := strings.CutPrefix(msg, "line "); ok {
		if _, after, ok := strings.Cut(rest, ": "); ok {
			msg = after
		}
	}
	return firstLine(msg)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
