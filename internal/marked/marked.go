// Package marked finds the scalars of YAML files that follow image policies, and those that hold a value at a known
// place. It does no I/O and does not choose versions.
package marked

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/edit"
	"github.com/helmsrc/helmsrc/internal/policy"
)

// Field is a scalar with a marker.
type Field struct {
	Document *edit.Document
	Node     *yaml.Node
	Marker   policy.Marker
	Line     int // in the file
	// Err is the reason why the marker cannot be followed. Then Node may be nil.
	Err error

	parent *yaml.Node // a mapping or list
}

// Object identifies the object of a document; missing fields are empty.
type Object struct{ APIVersion, Kind, Namespace, Name string }

// ObjectOf returns the object of a document.
func ObjectOf(root *yaml.Node) Object {
	meta := Value(root, "metadata")
	return Object{Text(Value(root, "apiVersion")), Text(Value(root, "kind")), Text(Value(meta, "namespace")), Text(Value(meta, "name"))}
}

// Text returns the text of a scalar, "" for any other node and for nil.
func Text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// Value returns the value of a key of a mapping, or nil. Of several equal keys, the last counts.
func Value(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	var found *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			found = n.Content[i+1]
		}
	}
	return found
}

// Sealed reports whether SOPS encrypted a part of a document and keeps a checksum of the whole document.
func Sealed(root *yaml.Node) bool {
	sops := Value(root, "sops")
	return Value(sops, "mac") != nil && Text(Value(sops, "mac_only_encrypted")) != "true"
}

// Any reports whether a file may have markers: most files do not have any, and need not be parsed.
func Any(data []byte) bool { return bytes.Contains(data, []byte(policy.Key)) }

var (
	errSealed    = errors.New("SOPS keeps a checksum of the whole document: edit it with sops, or encrypt it with mac_only_encrypted")
	errMisplaced = errors.New("the marker has no effect here: it must follow a scalar on the same line")
)

// Fields returns the scalars of a document that have a marker, in the order of the text. The marker is in the comment after
// the scalar or, if there is no such comment, in the comment above it, as for image-automation-controller.
func Fields(d *edit.Document) []Field {
	if d.Root == nil {
		return nil
	}
	f := &finder{d: d, sealed: Sealed(d.Root)}
	f.visit(d.Root, nil, false)
	return f.fields
}

type finder struct {
	d      *edit.Document
	sealed bool
	fields []Field

	comments map[string][]int // computed when they are needed
}

// visit collects the markers of a node. It does not follow aliases: their anchors are visited themselves.
func (f *finder) visit(n, parent *yaml.Node, key bool) {
	if n.Kind == yaml.ScalarNode && parent != nil && !key {
		f.scalar(n, parent)
		return
	}
	f.misplaced(n)
	if n.Kind == yaml.AliasNode {
		return
	}
	for i, child := range n.Content {
		f.visit(child, n, n.Kind == yaml.MappingNode && i%2 == 0)
	}
}

func (f *finder) scalar(n, parent *yaml.Node) {
	comment := n.LineComment
	if above := strings.TrimSpace(n.HeadComment); comment == "" && !strings.Contains(above, "\n") {
		comment = above
	}
	marker, found, err := policy.ParseMarker(comment)
	switch {
	case err != nil && n.LineComment == "":
		return // text that mentions a marker
	case err == nil && !found:
		f.misplaced(n)
		return
	case err == nil && f.sealed:
		err = errSealed
	}
	f.fields = append(f.fields, Field{Document: f.d, Node: n, Marker: marker, Line: f.d.Line(n), Err: err, parent: parent})
}

// misplaced reports markers in comments of other nodes than scalars. It ignores comments that merely mention a marker, such
// as lines that are commented out.
func (f *finder) misplaced(n *yaml.Node) {
	for i, comment := range []string{n.HeadComment, n.LineComment, n.FootComment} {
		if marker, found, _ := policy.ParseMarker(comment); found {
			f.fields = append(f.fields, Field{Document: f.d, Marker: marker, Line: f.line(n, strings.TrimSpace(comment), i-1), Err: errMisplaced})
		}
	}
}

// line returns the line of a comment of a node: the nearest line with its text above the node if side is -1, below if it is 1.
func (f *finder) line(n *yaml.Node, comment string, side int) int {
	line := f.d.Line(n)
	if f.comments == nil {
		f.comments = f.d.Comments()
	}
	lines := f.comments[comment]
	at, _ := slices.BinarySearch(lines, line)
	switch {
	case side < 0 && at > 0:
		return lines[at-1]
	case side > 0 && at < len(lines):
		return lines[at]
	}
	return line
}

// Sibling returns the value of the field in the same mapping or list that follows another part of the same policy, or "".
func (f Field) Sibling(fields []Field, part policy.Part) string {
	for _, other := range fields {
		if other.Err == nil && other.parent == f.parent && other.Marker == (policy.Marker{Namespace: f.Marker.Namespace, Name: f.Marker.Name, Part: part}) {
			return other.Node.Value
		}
	}
	return ""
}

// At returns the scalar on a line of a file that is the value of a key. It returns nil unless exactly one scalar matches.
func At(documents []*edit.Document, line int, key, value string) (*edit.Document, *yaml.Node) {
	for _, d := range documents {
		var found []*yaml.Node
		pairs(d.Root, func(_, k, v *yaml.Node) {
			if k.Value == key && v.Kind == yaml.ScalarNode && v.Value == value && (d.Line(k) == line || d.Line(v) == line) {
				found = append(found, v)
			}
		})
		if len(found) == 1 {
			return d, found[0]
		}
	}
	return nil, nil
}

// Inner returns the scalar whose text contains a line of a file and the value: a literal block, or quoted JSON. It also
// returns the number of the line in the text, counted from 1. It returns nil if no scalar matches.
func Inner(documents []*edit.Document, line int, value string) (document *edit.Document, found *yaml.Node, at int) {
	for _, d := range documents {
		edit.Each(d.Root, func(n *yaml.Node) {
			first := d.Line(n)
			switch {
			case n.Kind != yaml.ScalarNode:
			case n.Style == yaml.LiteralStyle && first < line && line <= first+1+strings.Count(strings.TrimRight(n.Value, "\n"), "\n"):
				document, found, at = d, n, line-first
			case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 && first == line && strings.IndexAny(n.Value, "[{") == 0 && strings.Contains(n.Value, value):
				document, found, at = d, n, 1
			}
		})
	}
	return document, found, at
}

// Within reports whether a folded or quoted text that begins on a line of a file contains a key and its value.
func Within(documents []*edit.Document, line int, key, value string) (found bool) {
	for _, d := range documents {
		edit.Each(d.Root, func(n *yaml.Node) {
			folded := n.Style&(yaml.FoldedStyle|yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0
			found = found || folded && strings.Contains(n.Value, key) && strings.Contains(n.Value, value) && d.Line(n) == line
		})
	}
	return found
}

// Location is a scalar that is the value of a key.
type Location struct {
	Document            *edit.Document
	Mapping, Key, Value *yaml.Node
}

// Locations are the scalars of a file by the places of their keys and values: by line, with column 0, and by line and column.
type Locations map[[2]int][]Location

// LocationsOf returns the values of the given keys.
func LocationsOf(documents []*edit.Document, keys []string) Locations {
	locations := Locations{}
	for _, d := range documents {
		pairs(d.Root, func(m, k, v *yaml.Node) {
			if v.Kind != yaml.ScalarNode || !slices.Contains(keys, k.Value) {
				return
			}
			onKey, onValue := d.Line(k), d.Line(v)
			at := [][2]int{{onKey, 0}, {onKey, k.Column}, {onValue, v.Column}}
			if onValue != onKey {
				at = append(at, [2]int{onValue, 0})
			}
			for _, key := range at {
				locations[key] = append(locations[key], Location{d, m, k, v})
			}
		})
	}
	return locations
}

// At returns the value at a line and column whose key is one of keys. The column may differ if the line has only one such value. It
// returns false if no value matches, or several.
func (p Locations) At(line, column int, keys []string) (Location, bool) {
	for _, at := range [][2]int{{line, column}, {line, 0}} {
		var found *Location
		for i, location := range p[at] {
			if !slices.Contains(keys, location.Key.Value) {
				continue
			}
			if found != nil {
				return Location{}, false
			}
			found = &p[at][i]
		}
		if found != nil {
			return *found, true
		}
	}
	return Location{}, false
}

// pairs visits the keys and values of all mappings in a tree.
func pairs(root *yaml.Node, visit func(mapping, key, value *yaml.Node)) {
	edit.Each(root, func(n *yaml.Node) {
		for i := 1; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
			visit(n, n.Content[i-1], n.Content[i])
		}
	})
}
