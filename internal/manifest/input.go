package manifest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/edit"
)

// File is a file of the input that was read, before its objects are in a set. The Input makes it and keeps it: several
// sets share it, so that nothing changes it.
type File struct {
	Name   string // as positions say it
	Walked bool   // found in a directory: no one named the file itself

	offered       bool // need not be a manifest
	referenceOnly bool // in a lookup directory, and not passed
	data          []byte

	batch  batch // of what can be read
	skips  []Skip
	unread error // why the file is skipped, nil for one that is no manifest
	errs   []error
}

// Objects lists what may matter to a caller that builds kustomizations: the objects that are kept, Kustomizations, and
// those that are kept for references.
func (f *File) Objects() []*Object {
	return slices.Concat(f.batch.kustomizations, f.batch.objects, f.batch.data)
}

// ReferenceOnly reports whether the file was only read so that others can refer to what is in it.
func (f *File) ReferenceOnly() bool { return f.referenceOnly }

// Kustomizations lists the Kustomizations of Flux.
func (f *File) Kustomizations() []*Object { return f.batch.kustomizations }

// Operators lists the ResourceSets, and what they take their inputs from, without their content.
func (f *File) Operators() []*Object { return f.batch.operators }

// Instances lists the FluxInstances of the operator, without their content.
func (f *File) Instances() []*Object { return f.batch.instances }

// Text is what is in the file, nil for one that cannot be read.
func (f *File) Text() []byte { return f.batch.text }

// Data is the file, byte for byte, nil if it was not kept. It is shared.
func (f *File) Data() []byte {
	if len(f.data) > maxFileSize {
		return nil // and not all of it
	}
	return f.data
}

// Mentions reports whether a word is in the text of the file, or may be: it cannot be read.
func (f *File) Mentions(word string) bool {
	return len(f.errs) > 0 || bytes.Contains(f.batch.text, []byte(word))
}

// MentionsFlux reports whether the file may contain an object of Flux.
func (f *File) MentionsFlux() bool {
	return len(f.errs) > 0 || mentionsFlux(f.batch.text)
}

// Origin finds the object from which one was built that may have got another name and namespace since. It is nil if
// there is none.
func (f *File) Origin(group, kind, name string) *Object {
	var like *Object
	count := 0
	for _, o := range slices.Concat(f.Objects(), f.Operators()) {
		if o.Group() != group || BareKind(o.Kind) != kind {
			continue
		}
		if o.Name == name {
			return o
		}
		count++
		if o.Name != "" && bytes.Contains([]byte(name), []byte(o.Name)) && (like == nil || len(like.Name) < len(o.Name)) {
			like = o
		} else if like == nil && count == 1 {
			like = o
		}
	}
	return like
}

// ParseFile reads a file that is not in the input: a kustomization leads to it.
func ParseFile(name string, data []byte) (*File, error) {
	b, err := new(parsing).parse(name, data)
	if err != nil {
		return nil, err
	}
	return &File{Name: name, data: data, batch: *b}, nil
}

// NoObjects is the error of a file without objects, nil for others.
func (f *File) NoObjects() error {
	switch {
	case len(f.errs) > 0:
		return f.errs[0]
	case f.unread != nil:
		return f.unread
	case len(f.skips) > 0:
		return &f.skips[0]
	case len(f.batch.skips) > 0:
		return &f.batch.skips[0]
	}
	return nil
}

// CheckExpansion refuses YAML whose aliases expand to too much, or that contains itself. Other mistakes are left to the
// code that reads it.
func CheckExpansion(name string, data []byte) error {
	if len(data) > maxFileSize {
		return &ParseError{Pos: Pos{File: name}, Msg: fmt.Sprintf("larger than %d MiB", maxFileSize>>20)}
	}
	if !bytes.Contains(data, []byte("&")) || !bytes.Contains(data, []byte("*")) {
		return nil
	}
	for c := range split(data) {
		d := newDocument(name, c.Text, c.Line, 0, false)
		root, err := d.parse()
		if err != nil || root == nil {
			continue
		}
		if err := d.expansion(root); err != nil {
			return err
		}
	}
	return nil
}

// FirstDocument is the first document of a file without objects, for its places and its
// comments.
func FirstDocument(name string, data []byte) *Object {
	o := &Object{Pos: Pos{File: name}}
	for c := range split(data) {
		o.at.doc = newDocument(name, c.Text, c.Line, 0, false)
		o.Pos = Pos{File: name, Line: c.Line + 1, Column: 1}
		for text := c.Text; isBlank(text[:edit.LineLength(text)]); o.Pos.Line++ {
			text = text[edit.LineLength(text):]
		}
		break
	}
	return o
}

// NewBuilt is an object that was built. Its fields are looked for where it came from; one that came from no object is
// at pos.
func NewBuilt(content map[string]any, from *Object, pos Pos) *Object {
	apiVersion, kind, namespace, name := Identify(content)
	o := &Object{APIVersion: apiVersion, Kind: Called(apiVersion, kind), Namespace: namespace, Name: name, Content: content, Pos: pos}
	if from != nil {
		o.Pos, o.at = from.Pos, from.at
	}
	return o
}

// Identify reads how an object is called, "" for what it does not say.
func Identify(content map[string]any) (apiVersion, kind, namespace, name string) {
	return At[string](content, "apiVersion"), At[string](content, "kind"), At[string](content, "metadata", "namespace"), At[string](content, "metadata", "name")
}

// AddBuilt adds objects that were built. Two that are the same are one, the first: several Kustomizations may include
// one component.
func (s *Set) AddBuilt(objects ...*Object) {
	for _, o := range objects {
		o.Namespace = cmp.Or(o.Namespace, s.namespace)
		same := func(other *Object) bool { return sameBuilt(other, o) }
		switch classify(o.APIVersion, o.Kind, nil) {
		case ours:
			if slices.ContainsFunc(s.byKey[o.key()], same) {
				continue
			}
			s.objects = append(s.objects, o)
			s.byKey[o.key()] = append(s.byKey[o.key()], o)
			s.install(FluxNote{installed(o), o.Pos})
		case data:
			if slices.ContainsFunc(s.data[o.key()], same) {
				continue
			}
			s.data[o.key()] = append(s.data[o.key()], o)
		case misnamed:
			if !o.ReferenceOnly {
				s.faults = append(s.faults, kindError(o))
			}
		default:
			s.addGenerated(generatedBy(o, textsOf(o.Content)))
			s.version(o)
		}
		s.kinds[groupKind{o.Group(), BareKind(o.Kind)}]++
	}
}

// ObjectError is an object that cannot be used: it was not made ready for admission.
type ObjectError struct {
	Object *Object
	Pos    Pos
	Err    error
	line   Excerpt
}

// Fault is the error of an object, at one of its fields.
func Fault(o *Object, err error, path ...any) *ObjectError {
	return FaultAt(o, o.Excerpt(path...), err)
}

// FaultAt is the error of an object at a place that may be in another file.
func FaultAt(o *Object, e Excerpt, err error) *ObjectError {
	return &ObjectError{Object: o, Pos: e.Pos, Err: err, line: e}
}

func (e *ObjectError) Error() string {
	kind, namespace, name := e.Object.Called()
	called := strings.TrimSpace(kind + " " + strings.TrimPrefix(namespace+"/"+name, "/"))
	if e.Object.Built != "" {
		called += " of " + e.Object.Built
	}
	return fmt.Sprintf("%s: %s: %s", e.Pos, called, e.Object.ConcealError(e.Err.Error()))
}

func (e *ObjectError) Unwrap() error { return e.Err }

// Excerpt is the line with the mistake.
func (e *ObjectError) Excerpt() Excerpt { return e.line }

// Raw is an object as it is in its file, before it is decrypted and before variables are substituted.
type Raw struct {
	*Object
	Value    map[string]any // what is in the file; shared: copy before changing it
	Document []byte         // the text of its document
	Whole    []byte         // the text of the file
	Index    int            // of the document in the file
	Item     bool           // one of a list: its document contains others too
}

// SealedError is an object that is encrypted, and that no available key opens. It counts as missing.
type SealedError struct{ Reason string }

func (e *SealedError) Error() string { return "encrypted with SOPS" }

// Hint says what would open it.
func (e *SealedError) Hint() string { return e.Reason }

// Raw is the object as it is in its file.
func (o *Object) Raw() (*Raw, error) {
	d := o.at.doc
	root, err := d.root()
	if err != nil {
		return nil, err
	}
	value, err := d.object(root, o.at.path)
	if err != nil {
		return nil, err
	}
	return &Raw{Object: o, Value: value, Document: d.text, Whole: d.whole, Index: d.index, Item: len(o.at.path) > 0}, nil
}

// NoNamespace reports whether the object was written without a namespace.
func (o *Object) NoNamespace() bool {
	n := o.node()
	return n != nil && scalar(n, "metadata", "namespace") == ""
}

// PathOf is the path of the first value that contains a text, as the object was written.
func (o *Object) PathOf(text string) []any { return pathOf(o.node(), text, 0) }

// WrittenName is what the object is called in its file, "" for one that is in none.
func (o *Object) WrittenName() string { return scalar(o.node(), "metadata", "name") }

// node is the object as it was written, nil for one that is in no file.
func (o *Object) node() *yaml.Node {
	root, err := o.at.root()
	if err != nil {
		return nil
	}
	_, value := locateValue(root, o.at.path)
	return resolve(value)
}

func (l location) root() (*yaml.Node, error) {
	if l.doc == nil {
		return nil, errNoText
	}
	return l.doc.root()
}

var errNoText = errors.New("not in a file")

func pathOf(n *yaml.Node, text string, depth int) []any {
	if n == nil || depth > maxDepth {
		return nil
	}
	for i, c := range n.Content {
		step := any(i)
		if n.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			step = n.Content[i-1].Value
		}
		if c.Kind == yaml.ScalarNode && strings.Contains(c.Value, text) {
			return []any{step}
		}
		if below := pathOf(c, text, depth+1); below != nil {
			return append([]any{step}, below...)
		}
	}
	return nil
}

// KustomizationFiles are the names of files that say how their directory is built, the first that is there.
func KustomizationFiles() []string {
	return []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}
}

// IsKustomizationFile reports whether a file of this name says how its directory is built.
func IsKustomizationFile(name string) bool {
	return slices.Contains(KustomizationFiles(), filepath.Base(name))
}

func (s *Set) takeFaults() []error {
	faults := s.faults
	s.faults = nil
	return faults
}

// sameBuilt reports whether two objects are the same. Kustomizations of Flux each mark what they build: that is no
// difference between two of them.
func sameBuilt(a, b *Object) bool {
	byFlux := func(o *Object) bool { return strings.HasPrefix(o.Built, "Kustomization ") }
	if byFlux(a) && byFlux(b) {
		return reflect.DeepEqual(unmarked(a.Content), unmarked(b.Content))
	}
	return a.Built != "" && reflect.DeepEqual(a.Content, b.Content)
}

// unmarked is an object without labels and annotations.
func unmarked(content map[string]any) map[string]any {
	meta, ok := content["metadata"].(map[string]any)
	if !ok {
		return content
	}
	content, meta = maps.Clone(content), maps.Clone(meta)
	delete(meta, "labels")
	delete(meta, "annotations")
	content["metadata"] = meta
	return content
}
