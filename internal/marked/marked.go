// Package marked finds the scalars of YAML files that follow image policies, and those that hold a version at a known
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
	// Err is why the marker cannot be followed. Node may be nil then.
	Err error

	parent *yaml.Node // a mapping or list
}

// Object names what a document holds; the fields are empty if it does not say so.
type Object struct{ APIVersion, Kind, Namespace, Name string }

// ObjectOf reads the head of a document.
func ObjectOf(root *yaml.Node) Object {
	meta := Value(root, "metadata")
	return Object{text(Value(root, "apiVersion")), text(Value(root, "kind")), text(Value(meta, "namespace")), text(Value(meta, "name"))}
}

func text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// Value is the value of a key of a mapping, nil if there is none. The last one counts of several.
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

// Sealed reports whether SOPS encrypted something in a document, and keeps a checksum of all the rest.
func Sealed(root *yaml.Node) bool {
	sops := Value(root, "sops")
	return Value(sops, "mac") != nil && text(Value(sops, "mac_only_encrypted")) != "true"
}

// Any reports whether a file may have markers: most have none and need not be parsed.
func Any(data []byte) bool { return bytes.Contains(data, []byte(policy.Key)) }

var (
	errSealed    = errors.New("SOPS keeps a checksum of the whole document: edit it with sops, or encrypt it with mac_only_encrypted")
	errMisplaced = errors.New("the marker has no effect here: it has to stand behind a scalar, on the same line")
)

// Fields lists the scalars of a document that have a marker, in the order of the text. A marker counts in the comment
// behind a scalar or, if there is none, in the one above it, as for image-automation-controller.
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
}

// visit looks at a node. Aliases are not followed: what they stand for is looked at where it stands.
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
	if comment == "" && !strings.Contains(n.HeadComment, "\n") {
		comment = n.HeadComment
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

// misplaced reports markers in comments of what is no scalar. Comments that merely mention one, as those of what is
// commented out, are left alone.
func (f *finder) misplaced(n *yaml.Node) {
	for _, comment := range []string{n.HeadComment, n.LineComment, n.FootComment} {
		if marker, found, _ := policy.ParseMarker(comment); found {
			f.fields = append(f.fields, Field{Document: f.d, Marker: marker, Line: f.d.Line(n), Err: errMisplaced})
		}
	}
}

// Sibling is the value of the field beside this one that follows another part of the same policy, "" if there is none.
func (f Field) Sibling(fields []Field, part policy.Part) string {
	for _, other := range fields {
		if other.Err == nil && other.parent == f.parent && other.Marker == (policy.Marker{Namespace: f.Marker.Namespace, Name: f.Marker.Name, Part: part}) {
			return other.Node.Value
		}
	}
	return ""
}

// At finds the scalar on a line of a file that is the value of a key, nil if there is none or if several are.
func At(documents []*edit.Document, line int, key, value string) (*edit.Document, *yaml.Node) {
	for _, d := range documents {
		if d.Root == nil {
			continue
		}
		var found []*yaml.Node
		each(d.Root, 0, func(k, v *yaml.Node) {
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

// maxDepth bounds the depth of documents. Those of manifests are a few levels deep.
const maxDepth = 1000

func each(n *yaml.Node, depth int, visit func(key, value *yaml.Node)) {
	if depth > maxDepth {
		return
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			visit(n.Content[i-1], child)
		}
		each(child, depth+1, visit)
	}
}

// Valued finds the key at a place that is one of several, with the mapping that it is in. A line with one such key need not
// have it at the column. It is nil if there is none, or if several could be meant.
func Valued(documents []*edit.Document, line, column int, keys []string) (d *edit.Document, mapping, key, value *yaml.Node) {
	found, exact := 0, false
	for _, doc := range documents {
		if doc.Root == nil {
			continue
		}
		within(doc.Root, 0, func(m, k, v *yaml.Node) {
			if slices.Contains(keys, k.Value) && v.Kind == yaml.ScalarNode && (doc.Line(k) == line || doc.Line(v) == line) {
				if here := k.Column == column || v.Column == column; here || !exact {
					found++
					d, mapping, key, value = doc, m, k, v
					if here && !exact {
						found, exact = 1, true
					}
				}
			}
		})
	}
	if found != 1 {
		return nil, nil, nil, nil
	}
	return d, mapping, key, value
}

func within(n *yaml.Node, depth int, visit func(mapping, key, value *yaml.Node)) {
	if depth > maxDepth {
		return
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			visit(n, n.Content[i-1], child)
		}
		within(child, depth+1, visit)
	}
}
