package manifest

import (
	"bytes"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

func (d *document) plainTree(tree *yaml.Node) (any, bool) {
	for i, c := range d.text {
		// An exclamation mark before a value may be a tag, which the tree does not say.
		if c == '!' && (i+1 == len(d.text) || bytes.IndexByte([]byte(" \t\r\n,]}"), d.text[i+1]) >= 0) {
			return nil, false
		}
	}
	return plainValue(tree)
}

// plainValue is the value of a tree in the types of JSON, if all its readers see the same in it: YAML 1.1 and 1.2,
// sigs.k8s.io/yaml and kustomize. That is so for nearly all documents. It saves writing each as JSON and reading that.
// It answers false for aliases, tags, numbers other than whole ones in decimals, and whatever one version takes for a
// truth value and the other one for text.
func plainValue(n *yaml.Node) (any, bool) {
	if n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
		return nil, false
	}
	switch n.Kind {
	case yaml.MappingNode:
		return plainMap(n)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, e := range n.Content {
			var ok bool
			if list[i], ok = plainValue(e); !ok {
				return nil, false
			}
		}
		return list, true
	case yaml.ScalarNode:
		return plainScalar(n)
	}
	return nil, false
}

func plainMap(n *yaml.Node) (any, bool) {
	m := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, ok := plainKey(n.Content[i])
		if !ok {
			return nil, false
		}
		if m[key], ok = plainValue(n.Content[i+1]); !ok {
			return nil, false
		}
	}
	return m, len(m) == len(n.Content)/2
}

func plainKey(n *yaml.Node) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
		return "", false
	}
	v, ok := plainScalar(n)
	switch v := v.(type) {
	case string:
		return v, ok
	case int64:
		return n.Value, ok
	}
	return "", false
}

func plainScalar(n *yaml.Node) (any, bool) {
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return n.Value, true
	}
	// The library has resolved the tag by YAML 1.2.
	switch tag := n.ShortTag(); {
	case n.Value == "true" || n.Value == "false":
		return n.Value == "true", tag == "!!bool"
	case n.Value == "" || n.Value == "~" || n.Value == "null":
		return nil, tag == "!!null"
	case isText(n.Value):
		return n.Value, tag == "!!str"
	// 18 digits are no more than an int64 holds; one that begins with 0 is octal to some.
	case tag == "!!int" && len(n.Value) <= 18 && strings.Trim(n.Value, "0123456789") == "" && (n.Value[0] != '0' || n.Value == "0"):
		i, err := strconv.ParseInt(n.Value, 10, 64)
		return i, err == nil
	}
	return nil, false
}

func isText(s string) bool {
	switch c := s[0]; {
	case isLetter(c):
		return isWord(s)
	case c >= '0' && c <= '9':
		// Numbers and times have no other characters than these. Of these, versions are the ones that are no number.
		return strings.Trim(s, "0123456789.") == "" && strings.Count(s, ".") > 1 || strings.Trim(s, "0123456789abcdefABCDEFxXoO_.:+-tTzZ ") != ""
	case c == '/' || c == '$' || c == '(' || c == '_' || c == '^':
		return true
	case c == '.':
		return strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../")
	}
	return false
}

// PlainDocuments are the values of the documents of a file, if all readers of YAML see the same documents and values in it.
// They are shared: copy before changing one.
func (f *File) PlainDocuments() ([]map[string]any, bool) {
	if f.batch == nil || len(f.batch.text) != len(f.data) || !sameDocuments(f.data) {
		return nil, false
	}
	var list []map[string]any
	for _, d := range f.batch.documents {
		m, ok := d.plainObject()
		if !ok {
			return nil, false
		}
		list = append(list, m)
	}
	return list, len(list) > 0
}

// PlainDocument is the value of the [FirstDocument] of a file with that data, if all readers of YAML see the same in it.
func (o *Object) PlainDocument(data []byte) (map[string]any, bool) {
	d := o.at.doc
	if d == nil || !sameDocuments(data) {
		return nil, false
	}
	return d.plainObject()
}

// plainObject is the value of a document, which is kept only if it was before.
func (d *document) plainObject() (map[string]any, bool) {
	if d.json {
		return nil, false
	}
	if d.decoded {
		m, ok := d.value.(map[string]any)
		return m, ok && d.plain && d.err == nil
	}
	tree, err := d.parse()
	if err != nil || tree == nil || d.check(tree) != nil {
		return nil, false
	}
	v, ok := d.plainTree(tree)
	m, isMap := v.(map[string]any)
	return m, ok && isMap
}

// sameDocuments reports whether every reader cuts a text into the same documents: at lines that say --- and no more, with
// something before and between them.
func sameDocuments(text []byte) bool {
	if bytes.ContainsAny(text, "\r\t") {
		return false
	}
	content := true // since the last separator; there may be one before everything
	for line := range bytes.Lines(text) {
		switch {
		case bytes.Equal(bytes.TrimRight(line, " \n"), []byte("---")):
			if !content {
				return false
			}
			content = false
		case bytes.HasPrefix(line, []byte("---")), bytes.HasPrefix(line, []byte("...")), line[0] == '%':
			return false
		default:
			content = content || !isBlank(line)
		}
	}
	return true
}
