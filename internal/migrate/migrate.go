// Package migrate rewrites manifests for current APIs: API versions, charts of registries as OCIRepositories, and
// HelmReleases of Flux v1. It only edits texts: it sends no requests, and does not check that the result resolves to the
// same charts.
package migrate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// ID identifies an object in any cluster.
type ID struct{ Kind, Namespace, Name string }

// Object is an object as it is applied: a document after kustomizations and variables.
type Object struct {
	ID
	APIVersion string
	Cluster    string
	Content    map[string]any
	// File is the file of its document, "" if that must not be edited; then Unfit is the reason. Shown is its name for messages.
	File, Shown, Unfit string
	Line               int // of the document or below, counted from 1
	// By names the Kustomization that built it from its document, "" without one.
	By    string
	Asked bool
}

// File is a file that may be edited.
type File struct {
	Name string
	Data []byte
}

// Input holds the manifests, and answers questions about them.
type Input struct {
	Files   []File
	Objects []*Object
	// All is false if arguments select objects: then only these change.
	All bool
	// Current returns the API version to write instead of an old one, "" if the version is current or unknown.
	Current func(apiVersion, kind string) string
	// Served reports whether the Flux of the input serves an API version of a kind.
	Served func(apiVersion, kind string) bool
	// SecretType returns the type of a Secret of the input, "" if the Secret is missing.
	SecretType func(namespace, name string) string
	// Registry returns the registry to which the index of an HTTP repository leads for the chart of a release, as an oci://
	// URL without a tag. It returns "" if there is no registry, or it is not known.
	Registry func(release ID) string
	// Left are objects that must not be changed.
	Left map[ID]bool
}

// Edited is a file with a new text.
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

// Result is the result of a migration.
type Result struct {
	Files   []Edited
	Changes []Note // the changes
	Refused []Note // objects that cannot be migrated, and stay
	Lost    []Note // settings that a new object does not have
	Wider   []Note // objects that a patch may match that it did not match before
	// Operated are the migrated releases of Flux 1.
	Operated []ID
	// Redirected are the sources that use a mirror now, or used it before.
	Redirected []*Object
}

// Plan returns the changes to the manifests. The same input gives the same result.
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
	names  map[ID]bool // of sources; they are taken
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
	content  func() map[string]any // as a cluster parses it, nil if it cannot
	objects  []*Object             // the objects that are made from it
	text     []byte
	more     [][]byte // documents to write after it
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
		n.Kind, _, _ = strings.Cut(n.Kind, ".") // the kind of a release of Flux 1 has the group after it
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

// step edits the text of a draft. An error leaves it unchanged.
func (t *draft) step(changes ...change) error {
	text, err := edited(t.text, changes...)
	if err == nil {
		t.text = text
	}
	return err
}

var errSeveral = errors.New("it contains several documents")

// edited returns a text with changes. Each change is applied to the result of the change before it: two changes next to each
// other in one line cannot be made in one step.
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
		if len(refusals) > 0 {
			first := slices.MinFunc(slices.Collect(maps.Keys(refusals)), func(a, b *yaml.Node) int {
				return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
			})
			return nil, refusals[first]
		}
	}
	return text, nil
}

// snapshot returns a function that restores the draft.
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

// asWritten reports whether the applied object and its document are equal at a path. kustomize reads documents as YAML 1.2, which
// is tried second: its library compares each key of a mapping with all its other keys.
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

// fixed returns the reason why the document of an object cannot be edited at some paths, "" if it can.
func (t *draft) fixed(o *Object, paths ...[]string) string {
	switch {
	case t.head.Kind != o.Kind:
		return "it is an item of a " + t.head.Kind + ": write it as a document of its own"
	case marked.Sealed(t.document.Root):
		return sealedText
	case t.head.Name != o.Name:
		return fmt.Sprintf("the document names it %q: %s creates it, edit it there", t.head.Name, o.generator())
	}
	for _, path := range paths {
		if !t.asWritten(o, path...) {
			return fmt.Sprintf("the applied object differs in %s: %s changes it, edit it there", strings.Join(path, "."), o.generator())
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
