package manifest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/bound"
)

// Patch is the text of a patch that was applied to an object.
type Patch struct {
	Text string
	In   *Object // the object whose document is the patch, or contains its text
}

// PatchedBy sets the function that returns the patches of an object in the order of their application. It is called
// only when the position of a field is needed.
func (o *Object) PatchedBy(patches func(*Object) []Patch) { o.patches = patches }

// Sets returns the entry of a patch that sets a field or a parent of it: of a strategic merge patch the key, of a
// JSON patch the value of the operation on its path. It returns nil for other fields.
func (p Patch) Sets(path ...any) *yaml.Node {
	root := parseText(p.Text)
	switch {
	case root == nil:
		return nil
	case root.Kind == yaml.SequenceNode:
		return operation(root, path)
	}
	if found, value := locateValue(root, path); value != nil {
		return found
	}
	for i, step := range path { // a list is set as a whole
		if _, index := step.(int); index {
			if found, value := locateValue(root, path[:i]); value != nil {
				return found
			}
		}
	}
	return nil
}

func parseText(text string) *yaml.Node {
	root, err := newDocument("", []byte(text), 0, 0, false).parse()
	if err != nil {
		return nil
	}
	return root
}

// operation returns the node of the value that the last operation of a JSON patch on a field sets.
func operation(list *yaml.Node, path []any) *yaml.Node {
	for _, op := range slices.Backward(list.Content) {
		steps := strings.Split(strings.TrimPrefix(scalar(op, "path"), "/"), "/")
		if len(steps) > len(path) || !slices.EqualFunc(steps, path[:len(steps)], sameStep) {
			continue
		}
		key, value := entry(op, "value")
		if value == nil {
			key, _ = entry(op, "path")
			return key
		}
		if len(steps) < len(path) {
			found, _ := locateValue(value, path[len(steps):])
			if found != value {
				return found
			}
		}
		return key
	}
	return nil
}

// sameStep compares a step of a JSON pointer with one of a path; "-" is the end of a list.
func sameStep(step string, of any) bool {
	switch of := of.(type) {
	case string:
		return strings.NewReplacer("~1", "/", "~0", "~").Replace(step) == of
	case int:
		return step == "-" || step == strconv.Itoa(of)
	}
	return false
}

// patched returns the excerpt of the last patch that sets a field, if the field differs from the object as it was written.
func (o *Object) patched(path []any) (Excerpt, bool) {
	if o.patches == nil || len(path) == 0 {
		return Excerpt{}, false
	}
	if root, err := o.at.root(); err != nil || root == nil || o.asWritten(root, path) {
		return Excerpt{}, false
	}
	for _, p := range slices.Backward(o.patches(o)) {
		if n := p.Sets(path...); n != nil {
			return p.excerpt(n), true
		}
	}
	return Excerpt{}, false
}

func (o *Object) asWritten(root *yaml.Node, path []any) bool {
	full := append(slices.Clone(o.at.path), path...)
	var written any
	if _, n := locateValue(root, full); n != nil && bound.Decode(n, &written) != nil {
		return false
	}
	a, errA := json.Marshal(written)
	b, errB := json.Marshal(ValueAt(o.Content, path))
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

func (p Patch) excerpt(n *yaml.Node) Excerpt {
	d := p.In.at.doc
	if d == nil {
		return Excerpt{Pos: p.In.Pos}
	}
	root, err := d.root()
	if err != nil || root == nil {
		return Excerpt{Pos: p.In.Pos}
	}
	in := holding(root, p.Text)
	switch {
	case in == nil && string(d.whole) != p.Text && string(d.text) != p.Text:
		return p.excerptInPatch(n)
	case in != nil && in.Style&yaml.LiteralStyle == 0:
		return Excerpt{Pos: d.pos(in)}
	case in != nil:
		n = shifted(n, in, d.text)
	}
	e := d.excerpt(d.pos(n), n, nil)
	if whole := parseText(p.Text); whole == nil || hasFlow(whole, whole) && !setsOne(whole) || whole.Kind == yaml.SequenceNode {
		return Excerpt{Pos: e.Pos} // the line may have values of another object
	}
	return e
}

// setsOne reports whether the spec of a patch sets one field, so that its line has nothing else.
func setsOne(patch *yaml.Node) bool {
	n := at(patch, "spec")
	for patch.Style&yaml.FlowStyle == 0 && n != nil && n.Kind == yaml.MappingNode && len(n.Content) == 2 {
		n = n.Content[1]
	}
	return n != nil && n.Kind == yaml.ScalarNode
}

// excerptInPatch returns the line of a node of a patch that another patch added to its object.
func (p Patch) excerptInPatch(n *yaml.Node) Excerpt {
	if p.In.patches == nil {
		return Excerpt{Pos: p.In.Pos}
	}
	for _, outer := range slices.Backward(p.In.patches(p.In)) {
		root := parseText(outer.Text)
		if root == nil {
			continue
		}
		if in := holding(root, p.Text); in != nil && in.Style&yaml.LiteralStyle != 0 {
			return outer.excerpt(shifted(n, in, []byte(outer.Text)))
		} else if in != nil {
			return outer.excerpt(in)
		}
	}
	return p.In.Excerpt("spec", "patches")
}

// holding returns the scalar of a document with a text, which a build may have stripped of its last line break.
func holding(n *yaml.Node, text string) *yaml.Node {
	if n.Kind == yaml.ScalarNode && strings.TrimSpace(n.Value) == strings.TrimSpace(text) {
		return n
	}
	for _, child := range n.Content {
		if found := holding(child, text); found != nil {
			return found
		}
	}
	return nil
}

// shifted returns a node of the text in a block, as a node of the text that contains the block.
func shifted(n, block *yaml.Node, text []byte) *yaml.Node {
	moved := *n
	moved.Line += block.Line
	for i, line := range strings.Split(block.Value, "\n") {
		if strings.TrimSpace(line) != "" {
			moved.Column += max(0, len(lineText(text, block.Line+1+i))-len(line))
			break
		}
	}
	return &moved
}
