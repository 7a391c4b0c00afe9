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

// File is a file of the input after parsing, before its objects are added to a set. The Input creates it and owns it:
// several sets share it, so it must not change.
type File struct {
	Name   string // as positions name it
	Walked bool   // found in a directory: the user did not name the file itself

	offered       bool // need not be a manifest
	referenceOnly bool // in a lookup directory, and not passed
	data          []byte

	batch  batch // the objects that can be read
	skips  []Skip
	unread error // why the file is skipped, nil if it is not
	errs   []error
}

// Objects lists the objects that a build of kustomizations may need: the Kustomizations, the kept objects, and the
// objects that are kept for references.
func (f *File) Objects() []*Object {
	return slices.Concat(f.batch.kustomizations, f.batch.objects, f.batch.data)
}

// ReferenceOnly reports whether the file was read only so that references to its objects can be resolved.
func (f *File) ReferenceOnly() bool { return f.referenceOnly }

// Kustomizations lists the Kustomizations of Flux.
func (f *File) Kustomizations() []*Object { return f.batch.kustomizations }

// Operators lists the ResourceSets and their input providers, without their content.
func (f *File) Operators() []*Object { return f.batch.operators }

// Instances lists the FluxInstances of the operator, without their content.
func (f *File) Instances() []*Object { return f.batch.instances }

// Text returns the decoded text of the file, nil if it cannot be read.
func (f *File) Text() []byte { return f.batch.text }

// Data returns the bytes of the file, nil if they were not kept. The result is shared and must not be changed.
func (f *File) Data() []byte {
	if len(f.data) > maxFileSize {
		return nil // only a part of it was read
	}
	return f.data
}

// Mentions reports whether the text of the file contains a word, or may contain it because the file cannot be read.
func (f *File) Mentions(word string) bool {
	return len(f.errs) > 0 || bytes.Contains(f.batch.text, []byte(word))
}

// MentionsFlux reports whether the file may contain an object of Flux.
func (f *File) MentionsFlux() bool {
	return len(f.errs) > 0 || mentionsFlux(f.batch.text)
}

// Origin returns the object of the file from which a built object may come, although its name and namespace may have
// changed. It returns nil if the file has no object of that kind.
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

// ParseFile reads a file that is not in the input, but that a kustomization refers to.
func ParseFile(name string, data []byte) (*File, error) {
	b, err := new(parsing).parse(name, data)
	if err != nil {
		return nil, err
	}
	return &File{Name: name, data: data, batch: *b}, nil
}

// NoObjects returns the error of a file without objects, nil for every other file.
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

// CheckExpansion refuses YAML whose aliases expand to too much, or that contains itself. It does not report other
// mistakes; the reader of the text does.
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

// FirstDocument returns an object for the first document of a file without objects, for its positions and comments.
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

// NewBuilt returns an object of a build. Its fields are looked for in the object from; without such an object its
// position is pos.
func NewBuilt(content map[string]any, from *Object, pos Pos) *Object {
	apiVersion, kind, namespace, name := Identify(content)
	o := &Object{APIVersion: apiVersion, Kind: Called(apiVersion, kind), Namespace: namespace, Name: name, Content: content, Pos: pos}
	if from != nil {
		o.Pos, o.at = from.Pos, from.at
	}
	return o
}

// Identify returns the four names of an object, "" for each that its content does not have.
func Identify(content map[string]any) (apiVersion, kind, namespace, name string) {
	return At[string](content, "apiVersion"), At[string](content, "kind"), At[string](content, "metadata", "namespace"), At[string](content, "metadata", "name")
}

// AddBuilt adds objects of a build. Of two equal objects only the first is added: several Kustomizations may include
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

// ObjectError reports an object that cannot be used because it could not be prepared for admission.
type ObjectError struct {
	Object *Object
	Pos    Pos
	Err    error
	line   Excerpt
}

// Fault returns the error of an object at one of its fields.
func Fault(o *Object, err error, path ...any) *ObjectError {
	return FaultAt(o, o.Excerpt(path...), err)
}

// FaultAt returns the error of an object at a place that may be in another file.
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

// Excerpt returns the line with the mistake.
func (e *ObjectError) Excerpt() Excerpt { return e.line }

// Raw is an object as its file contains it, before decryption and substitution of variables.
type Raw struct {
	*Object
	Value    map[string]any // the content in the file; shared: copy before changing it
	Document []byte         // the text of its document
	Whole    []byte         // the text of the file
	Index    int            // of the document in the file
	Item     bool           // the object is an item of a list: its document contains more objects
}

// SealedError reports an encrypted object that no available key can decrypt. Such an object counts as missing.
type SealedError struct{ Reason string }

func (e *SealedError) Error() string { return "encrypted with SOPS" }

// Hint names the key that would decrypt the object.
func (e *SealedError) Hint() string { return e.Reason }

// Raw returns the object as its file contains it.
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

// PathOf returns the path of the first value that contains a text, in the object as it was written.
func (o *Object) PathOf(text string) []any { return pathOf(o.node(), text, 0) }

// WrittenName returns the name of the object in its file, "" if it is in no file.
func (o *Object) WrittenName() string { return scalar(o.node(), "metadata", "name") }

// node returns the object as it was written, nil if it is in no file.
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

// KustomizationFiles returns the names under which kustomize looks for a kustomization file. The first that exists counts.
func KustomizationFiles() []string {
	return []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}
}

// IsKustomizationFile reports whether name is the name of a kustomization file.
func IsKustomizationFile(name string) bool {
	return slices.Contains(KustomizationFiles(), filepath.Base(name))
}

func (s *Set) takeFaults() []error {
	faults := s.faults
	s.faults = nil
	return faults
}

// sameBuilt reports whether two objects are the same. Each Kustomization of Flux marks the objects that it builds:
// the marks do not count as a difference.
func sameBuilt(a, b *Object) bool {
	byFlux := func(o *Object) bool { return strings.HasPrefix(o.Built, "Kustomization ") }
	if byFlux(a) && byFlux(b) {
		return reflect.DeepEqual(unmarked(a.Content), unmarked(b.Content))
	}
	return a.Built != "" && reflect.DeepEqual(a.Content, b.Content)
}

// unmarked returns an object without labels and annotations.
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
