package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

type jsonValue struct {
	text   []byte
	offset int
}

// jsonStream cuts a text into the JSON values that follow each other. It returns nil if the text is not JSON from
// beginning to end; it may still be YAML.
func jsonStream(text []byte) []jsonValue {
	if !startsLikeJSON(text) {
		return nil
	}
	var values []jsonValue
	dec := json.NewDecoder(bytes.NewReader(text))
	for {
		var raw json.RawMessage
		if err := dec.Decode(&raw); errors.Is(err, io.EOF) {
			return values
		} else if err != nil {
			return nil
		}
		values = append(values, jsonValue{raw, int(dec.InputOffset()) - len(raw)})
	}
}

func startsLikeJSON(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && text[0] == '{'
}

// jsonSyntax returns the syntax error of text that looks like JSON, and nil for other text. {a: b} looks like YAML.
func jsonSyntax(text []byte) error {
	trimmed := bytes.TrimLeft(text, " \t\r\n")
	if !bytes.HasPrefix(trimmed, []byte("{")) || !bytes.HasPrefix(bytes.TrimLeft(trimmed[1:], " \t\r\n"), []byte(`"`)) {
		return nil
	}
	return json.Unmarshal(text, new(json.RawMessage))
}

// jsonTree reads JSON into the same kind of tree as YAML, so that positions are found in the same way. The YAML
// parser itself refuses some JSON, such as an escaped slash.
func jsonTree(text []byte) (*yaml.Node, error) {
	b := &treeBuilder{text: text, dec: json.NewDecoder(bytes.NewReader(text)), line: 1, col: 1}
	b.dec.UseNumber()
	return b.value(0)
}

type treeBuilder struct {
	text      []byte
	dec       *json.Decoder
	at        int // lines are counted up to this offset
	line, col int
}

func (b *treeBuilder) value(depth int) (*yaml.Node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	n := &yaml.Node{}
	n.Line, n.Column = b.next()
	token, err := b.dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		n.Kind = yaml.MappingNode
		if t == '[' {
			n.Kind = yaml.SequenceNode
		}
		for b.dec.More() {
			child, err := b.value(depth + 1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		_, err = b.dec.Token()
	case string:
		n.Kind, n.Style, n.Tag, n.Value = yaml.ScalarNode, yaml.DoubleQuotedStyle, "!!str", t
	case nil:
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, "!!null", "null"
	default:
		n.Kind, n.Value = yaml.ScalarNode, fmt.Sprint(t)
	}
	return n, err
}

func (b *treeBuilder) next() (line, col int) {
	end := int(b.dec.InputOffset())
	for end < len(b.text) && bytes.IndexByte([]byte(" \t\r\n,:"), b.text[end]) >= 0 {
		end++
	}
	passed := b.text[b.at:end]
	if i := bytes.LastIndexByte(passed, '\n'); i >= 0 {
		b.line += bytes.Count(passed, []byte("\n"))
		b.col = 1
		passed = passed[i+1:]
	}
	b.col += utf8.RuneCount(passed)
	b.at = end
	return b.line, b.col
}
