// Package migrate works out how manifests are written for current APIs: API versions, charts of registries as
// OCIRepositories, and Flux v1's HelmReleases. It edits texts and nothing else, sends no request, and does not know whether
// what it makes resolves to the same charts.
package migrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/bound"
	"github.com/helmsrc/helmsrc/internal/edit"
	"github.com/helmsrc/helmsrc/internal/marked"
)

// ID names an object in whichever cluster.
type ID struct{ Kind, Namespace, Name string }

// Object is one as it is applied: what kustomizations and variables made of a document.
type Object struct {
	ID
	APIVersion string
	Cluster    string
	Content    map[string]any
	// File is the file of its document, "" if that is not to be edited. Shown names it in any case, and Unfit says why not.
	File, Shown, Unfit string
	Line               int // of the document or below, counted from 1
	// By names what made it of its document, "" for nothing.
	By    string
	Asked bool
}

// File is one that may be edited.
type File struct {
	Name string
	Data []byte
}

// Input is everything that is known of the manifests.
type Input struct {
	Files   []File
	Objects []*Object
	// All is false if arguments select objects: then only these change.
	All bool
	// Current is the API version to write for an old one, "" for one that is current or unknown.
	Current func(apiVersion, kind string) string
	// Served reports whether the Flux in question serves an API version of a kind.
	Served func(apiVersion, kind string) bool
	// SecretType is the type of a Secret of the input, "" if it is not there.
	SecretType func(namespace, name string) string
	// Registry is where the index of an HTTP repository leads to for the chart of a release: an oci:// URL without a tag,
	// "" for one that is no registry or not known.
	Registry func(release ID) string
	// Left are objects that stay as they are.
	Left map[ID]bool
}

// Edited is a file with another text.
type Edited struct {
	Name string
	Text []byte
}

// Note is about a place in a file. Hint may be empty.
type Note struct {
	ID
	File string
	Line int
	Text string
	Hint string
}

// Result is what there is to do.
type Result struct {
	Files   []Edited
	Changes []Note // what changes
	Refused []Note // what cannot be migrated, and stays
	Lost    []Note // what a new object cannot say
	Wider   []Note // what a patch may reach that it did not
	// Operated are the releases that were of Flux 1.
	Operated []ID
	// Redirected are the sources that are those of a mirror now, or were before.
	Redirected []*Object
}

// Plan works out what is to change. The same input gives the same result.
func Plan(in Input) *Result {
	p := &planner{in: in, result: &Result{}}
	p.read()
	p.versions()
	p.sources()
	p.operators()
	p.finish()
	return p.result
}

type planner struct {
	in     Input
	files  []*parsed
	drafts []*draft
	result *Result
	names  map[ID]bool // of sources, taken
}

type parsed struct {
	File
	edits *edit.File
}

type draft struct {
	file     *parsed
	document *edit.Document
	first    int // its lines in the file
	last     int
	head     marked.Object
	content  func() map[string]any // as a cluster reads it, nil if it cannot
	objects  []*Object             // that it becomes
	text     []byte
	more     [][]byte // documents behind it
	gone     bool
}

func (p *planner) read() {
	for _, f := range p.in.Files {
		pf := &parsed{File: f, edits: edit.Parse(f.Data)}
		p.files = append(p.files, pf)
		for _, d := range pf.edits.Documents() {
			if d.Root == nil {
				continue
			}
			t := &draft{file: pf, document: d, head: marked.ObjectOf(d.Root), text: d.Text()}
			t.content = sync.OnceValue(func() (content map[string]any) {
				if text, err := sigsyaml.YAMLToJSON(d.Text()); err == nil {
					_ = utiljson.Unmarshal(text, &content)
				}
				return content
			})
			t.first, t.last = d.Lines()
			p.drafts = append(p.drafts, t)
		}
	}
	for _, o := range p.in.Objects {
		if t := p.draftOf(o); t != nil {
			t.objects = append(t.objects, o)
		}
	}
	p.names = map[ID]bool{}
	for _, o := range p.in.Objects {
		p.names[o.ID] = true
	}
}

func (p *planner) draftOf(o *Object) *draft {
	i := slices.IndexFunc(p.drafts, func(t *draft) bool { return t.file.Name == o.File && t.first <= o.Line && o.Line <= t.last })
	if i < 0 || o.File == "" {
		return nil
	}
	return p.drafts[i]
}

func (p *planner) asked(t *draft) bool {
	if slices.ContainsFunc(t.objects, func(o *Object) bool { return p.in.Left[o.ID] }) {
		return false
	}
	return p.in.All || slices.ContainsFunc(t.objects, func(o *Object) bool { return o.Asked })
}

func (t *draft) note(text string, at ...*yaml.Node) Note {
	n := Note{ID: ID{t.head.Kind, t.head.Namespace, t.head.Name}, File: t.file.Name, Line: t.first, Text: text}
	if len(t.objects) > 0 {
		n.ID = t.objects[0].ID
		n.Kind, _, _ = strings.Cut(n.Kind, ".") // of Flux 1 it has the group behind it
	}
	for _, node := range at {
		if node != nil {
			n.Line = t.document.Line(node)
		}
	}
	if len(at) == 0 {
		n.Line = t.document.Line(t.document.Root.Content[0])
	}
	return n
}

func (p *planner) refuse(n Note, hint string) {
	n.Hint = hint
	if !slices.Contains(p.result.Refused, n) {
		p.result.Refused = append(p.result.Refused, n)
	}
}

// A change edits a document.
type change func(d *edit.Document, root *yaml.Node) error

// step edits the text of a draft. After an error it is as it was.
func (t *draft) step(changes ...change) error {
	text, err := edited(t.text, changes...)
	if err == nil {
		t.text = text
	}
	return err
}

var errSeveral = errors.New("it holds several documents")

// edited is a text with changes. Each one finds the document as those before it left it: two changes beside each other in one
// line cannot be made at once.
func edited(text []byte, changes ...change) ([]byte, error) {
	for _, change := range changes {
		f := edit.Parse(text)
		if len(f.Documents()) != 1 || f.Documents()[0].Root == nil {
			return nil, errSeveral
		}
		d := f.Documents()[0]
		if err := change(d, d.Root); err != nil {
			return nil, err
		}
		var refusals map[*yaml.Node]error
		text, _, refusals = f.Apply()
		for _, err := range refusals {
			return nil, err
		}
	}
	return text, nil
}

// snapshot returns a function that puts everything back.
func (t *draft) snapshot() func() {
	old := *t
	return func() { *t = old }
}

func (p *planner) finish() {
	for _, t := range p.drafts {
		texts := slices.Clone(t.more)
		if !t.gone {
			texts = append([][]byte{t.text}, texts...)
		}
		t.document.Put(texts...)
	}
	for _, f := range p.files {
		text, _, _ := f.edits.Apply()
		if !bytes.Equal(text, f.Data) {
			p.result.Files = append(p.result.Files, Edited{f.Name, text})
		}
	}
}

const sealedText = "SOPS keeps a checksum of the whole document: edit it with sops"

func child(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		n = marked.Value(n, key)
	}
	return n
}

func text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

func inside(v any, path ...string) any {
	for _, key := range path {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

func str(v any, path ...string) string {
	s, _ := inside(v, path...).(string)
	return s
}

// asWritten reports whether what is applied is what the document has, at a path. kustomize reads documents as YAML 1.2, which is
// tried second: its library compares each key of a mapping with every other one.
func (t *draft) asWritten(o *Object, path ...string) bool {
	applied := inside(o.Content, path...)
	if sameJSON(inside(t.content(), path...), applied) {
		return true
	}
	var written any
	n := child(t.document.Root, path...)
	return o.By != "" && n != nil && bound.Decode(n, &written) == nil && sameJSON(written, applied)
}

func sameJSON(a, b any) bool {
	textA, errA := json.Marshal(a)
	textB, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(textA, textB)
}

// fixed says why the document of an object cannot be edited at some paths, "" if it can.
func (t *draft) fixed(o *Object, paths ...[]string) string {
	switch {
	case t.head.Kind != o.Kind:
		return "it is an item of a " + t.head.Kind + ": write it as a document of its own"
	case marked.Sealed(t.document.Root):
		return sealedText
	case t.head.Name != o.Name:
		return fmt.Sprintf("the document names it %q: %s makes it, edit it there", t.head.Name, o.generator())
	}
	for _, path := range paths {
		if !t.asWritten(o, path...) {
			return fmt.Sprintf("what is applied differs in %s from what stands there: %s changes it, edit it there", strings.Join(path, "."), o.generator())
		}
	}
	return ""
}

func (o *Object) generator() string {
	if o.By == "" {
		return "a kustomization, a variable or an alias"
	}
	return o.By
}
