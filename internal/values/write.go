package values

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// WriteOptions configure how composed values are written.
type WriteOptions struct {
	// Origins adds a comment with its origin to each value.
	Origins bool
	// ShowSecrets writes the values of Secrets.
	ShowSecrets bool
	// Inline are the inline values as they may be shown. Values that differ from the composed values are written instead of
	// them.
	Inline map[string]any
	// Key returns a key of the map at a path as it may be shown; nil shows all keys.
	Key func(path []any, name string) string
	// Hide returns the text to write instead of a value of a Secret; nil writes Hidden.
	Hide func(path []any) string
}

// Hidden is written instead of a value of a Secret.
const Hidden = "**REDACTED**"

// Write writes composed values as YAML with sorted keys, which helm accepts with --values. It hides values of Secrets, and
// values that may contain them.
func (o *Origins) Write(w io.Writer, composed map[string]any, options WriteOptions) error {
	wr := &writer{origins: o, options: options}
	node := wr.node(composed, nil)
	if err := wr.encode(); err != nil {
		return err
	}
	text := &limited{w, maxText}
	if len(composed) == 0 {
		return encodeTo(text, node)
	}
	for part := range slices.Chunk(node.Content, 2*atOnce) {
		if err := encodeTo(text, &yaml.Node{Kind: yaml.MappingNode, Content: part}); err != nil {
			return err
		}
	}
	return nil
}

func encodeTo(w io.Writer, node *yaml.Node) error {
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(node); err != nil {
		return err
	}
	return encoder.Close()
}

// atOnce is the number of values that are encoded together: one by one is slow, and an encoder keeps all its input.
const atOnce = 1000

type writer struct {
	origins *Origins
	options WriteOptions
	leaves  []any        // keys, and values that are encoded whole
	nodes   []*yaml.Node // of the leaves
}

// leaf returns the node of a value. The node is empty until encode is called.
func (w *writer) leaf(value any) *yaml.Node {
	n := new(yaml.Node)
	if text, ok := value.(string); ok && strings.Contains(text, "\n") {
		n.SetString(text) // in a list, the encoder writes a wrong indentation for a text that begins with space
		return n
	}
	w.leaves, w.nodes = append(w.leaves, value), append(w.nodes, n)
	return n
}

func (w *writer) encode() error {
	nodes := w.nodes
	for leaves := range slices.Chunk(w.leaves, atOnce) {
		var list yaml.Node
		if err := list.Encode(leaves); err != nil {
			return err
		}
		for i, encoded := range list.Content {
			comment := nodes[i].LineComment
			*nodes[i] = *encoded
			nodes[i].LineComment = comment
		}
		nodes = nodes[len(leaves):]
	}
	return nil
}

func (w *writer) node(value any, path []any) *yaml.Node {
	switch v := value.(type) {
	case map[string]any:
		if len(v) > 0 {
			return w.mapping(v, path)
		}
	case []any:
		if _, found := w.origins.Of(v, path...); !found {
			return w.list(v, path)
		}
	}
	reference, found := w.origins.Of(value, path...)
	if !w.options.ShowSecrets {
		value = w.shown(value, path, reference, found)
	}
	n := w.leaf(value)
	if w.options.Origins {
		n.LineComment = comment(reference, found)
	}
	return n
}

// shown returns the value that may be written. A value without an origin was merged, maybe from a Secret.
func (w *writer) shown(value any, path []any, reference *Reference, found bool) any {
	switch {
	case !found && !w.origins.Secret(), found && reference != nil && reference.Kind != kindSecret:
		return value
	case !found, reference != nil:
		return w.hidden(path)
	}
	if inline, ok := at(w.options.Inline, path); ok {
		return inline
	}
	return w.hidden(path)
}

func (w *writer) hidden(path []any) string {
	if w.options.Hide == nil {
		return Hidden
	}
	return w.options.Hide(path)
}

func (w *writer) mapping(m map[string]any, path []any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		shown := name
		if w.options.Key != nil && !w.options.ShowSecrets {
			shown = w.options.Key(path, name)
		}
		key, value := w.leaf(shown), w.node(m[name], append(slices.Clone(path), name))
		switch w.leaves[len(w.leaves)-1].(type) {
		case map[string]any, []any:
			// A comment after a list or a map would follow its last value.
			key.LineComment, value.LineComment = value.LineComment, ""
		}
		n.Content = append(n.Content, key, value)
	}
	return n
}

func (w *writer) list(items []any, path []any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for i, item := range items {
		n.Content = append(n.Content, w.node(item, append(slices.Clone(path), i)))
	}
	return n
}

func comment(reference *Reference, found bool) string {
	switch {
	case !found:
		return ""
	case reference == nil:
		return "spec.values"
	}
	switch reference.Kind {
	case kindChartFile:
		return "file " + reference.Name + " of the chart"
	case kindURL:
		return reference.Name
	}
	text := fmt.Sprintf("%s %s/%s, key %s", reference.Kind, reference.Namespace, reference.Name, reference.GetValuesKey())
	if reference.TargetPath != "" {
		text += ", targetPath " + reference.TargetPath
	}
	return text
}
