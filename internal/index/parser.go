package index

import (
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/finding"
)

const (
	// maxParsed bounds the input of the full parser, in marks: line ends, colons, commas and the like. A node takes
	// some 200 bytes and needs a mark, so the parser needs at most some 450 MiB. A YAML index of 20 MiB has one and
	// a half million marks.
	maxParsed = 2 << 20

	// maxAliased bounds the number of values reached through aliases and merge keys. Every aliasedText bytes of a
	// value count as one more value.
	maxAliased  = 4 << 20
	aliasedText = 32

	// maxKeys bounds the keys of one mapping, and so the charts of an index.
	maxKeys = 1 << 20

	// maxVersions bounds the entries of one chart that are decoded. A million of them need some 250 MiB.
	maxVersions = 1 << 20
)

// plainIndex is advice for an index that the scanner cannot read without the full parser.
const plainIndex = "write the index in block style, as 'helm repo index' does, or in JSON, as 'helm repo index --json' does"

var (
	errTooManyKeys     = fmt.Errorf("more than %d keys in one mapping", maxKeys)
	errTooManyVersions = fmt.Errorf("more than %d versions of one chart", maxVersions)
	errTooManyMarks    = &finding.Problem{Text: "the index is too large for the full YAML parser, which its syntax needs", Advice: plainIndex}
	errAliases         = errors.New("excessive aliasing")
	errManyDocuments   = errors.New("more than one YAML document")
	errNotMapping      = errors.New("the index is not a mapping")
	errEntries         = errors.New("entries is not a mapping")
	errKey             = errors.New("a mapping key is not a scalar")
	errMerge           = errors.New("a merge key needs a mapping or a list of mappings")
)

// parse reads YAML with the full parser. The node is nil if the input has only comments.
func parse(r io.Reader) (root *yaml.Node, err error) {
	defer func() {
		// The parser is known to panic on some malformed input; that is an error of the input.
		if p := recover(); p != nil {
			root, err = nil, fmt.Errorf("yaml: %v", p)
		}
	}()
	marks := &marksReader{r: r}
	decoder := yaml.NewDecoder(marks)
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case marks.count > maxParsed:
		return nil, errTooManyMarks // the decoder's error has only its text
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, err
	}
	switch err := decoder.Decode(&yaml.Node{}); {
	case err == nil:
		return nil, errManyDocuments
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return document.Content[0], nil
}

// A marksReader counts the marks that can start a node, and stops before the parser has built too many nodes.
type marksReader struct {
	r     io.Reader
	last  byte
	count int
}

func (m *marksReader) Read(p []byte) (int, error) {
	if m.count > maxParsed {
		return 0, errTooManyMarks
	}
	n, err := m.r.Read(p)
	for _, c := range p[:n] {
		m.count += m.marks(c)
		m.last = c
	}
	return n, err
}

// marks returns how many nodes may begin with a character.
func (m *marksReader) marks(c byte) (n int) {
	switch c {
	case ',':
		n = 2 // a key, and the null of a missing value
	case '[', '{', '\n', '\r':
		n = 1
	case ' ', '\t':
		if m.last == '-' || m.last == '?' {
			n = 1
		}
	case ':', '?', '&', '*', '!':
		if !isWord(m.last) {
			n = 1
		}
	}
	if m.last == ':' && !isWord(c) && c != '/' {
		n++
	}
	return n
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// checkNode checks every mapping for duplicate keys, invalid merge keys and its size, and anchors that contain themselves.
func checkNode(root *yaml.Node) error {
	c := nodeChecker{open: map[*yaml.Node]bool{}}
	return c.check(root)
}

// A nodeChecker holds the anchored nodes around the node that it checks.
type nodeChecker struct{ open map[*yaml.Node]bool }

func (c *nodeChecker) check(n *yaml.Node) error {
	if n.Kind == yaml.AliasNode {
		if c.open[n.Alias] {
			return fmt.Errorf("line %d: anchor %q contains itself", n.Line, n.Value)
		}
		return nil
	}
	if n.Anchor != "" {
		c.open[n] = true
		defer delete(c.open, n)
	}
	if n.Kind == yaml.MappingNode {
		if err := c.keys(n); err != nil {
			return err
		}
	}
	for _, child := range n.Content {
		if err := c.check(child); err != nil {
			return err
		}
	}
	return nil
}

func (c *nodeChecker) keys(n *yaml.Node) error {
	if len(n.Content)/2 > maxKeys {
		return errTooManyKeys
	}
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		key := target(n.Content[i])
		if key.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: %w", n.Content[i].Line, errKey)
		}
		if seen[key.Value] {
			return duplicateKey(key.Value, n.Content[i].Line)
		}
		seen[key.Value] = true
		if isMerge(n.Content[i]) && !mergeable(n.Content[i+1]) {
			return fmt.Errorf("line %d: %w", n.Content[i].Line, errMerge)
		}
	}
	return nil
}

// target returns the node of an alias, and any other node itself.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isMerge(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "<<" && n.Tag == "!!merge"
}

func mergeable(n *yaml.Node) bool {
	n = target(n)
	if n.Kind != yaml.SequenceNode {
		return n.Kind == yaml.MappingNode
	}
	for _, item := range n.Content {
		if target(item).Kind != yaml.MappingNode {
			return false
		}
	}
	return true
}

// duplicateKey returns the error of a key that occurs twice in one mapping. The line is 0 if it is not known.
func duplicateKey(key string, line int) error {
	if line == 0 {
		return fmt.Errorf("key %q already set in map", key)
	}
	return fmt.Errorf("line %d: key %q already set in map", line, key)
}
