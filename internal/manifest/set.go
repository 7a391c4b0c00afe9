package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/conceal"
)

// maxDocuments is the limit of the documents of one file.
const maxDocuments = 50_000

// Set holds the objects that were read. Its creator adds to it; once an inventory has it, it no longer changes,
// except for the notes about lookups. Lookups are safe for concurrent use, additions are not.
type Set struct {
	namespace string // for objects without one

	objects []*Object
	data    map[key][]*Object // Secrets, ConfigMaps, ServiceAccounts and Namespaces
	byKey   map[key][]*Object
	kinds   map[groupKind]int
	skips   []Skip
	faults  []error // errors of single objects: the other objects of the file are used

	generated map[Generated]*Object // Secrets and ConfigMaps that controllers create in the cluster

	flux      []FluxNote
	versioned []*Object

	dirs  []string // the directories of the files that the user named
	roots []string // directories that the user named

	unknown []string // namespaces that may have more objects than are known, "" for all

	siblings     *Set         // the files beside the named files, may be nil
	surroundings *Set         // the files of the lookup directories, may be nil
	unread       bool         // the lookup directories have more files than may be read
	broken       []brokenFile // files beside the input
	unreadable   []brokenFile // files of the input
	regrouped    []*Object    // objects of a kept kind, in a group that resembles its own
	unapplied    []*Object    // objects of files that are not applied

	opened  map[*Object]Opened
	parsing *parsing

	mu    sync.Mutex // guards notes, and the documents of Secrets, which are read on use
	notes map[key]Note

	index func() *index
}

type groupKind struct{ group, kind string }

// KindCount is the number of objects of a kind.
type KindCount struct {
	Group, Kind string
	Count       int
}

// Skip reports why a file or document was left out. It is for debug output, and the error of a file that must not be left out.
type Skip struct {
	File, Reason string
	at           Excerpt
}

func (s *Skip) Error() string { return s.Reason }

// Excerpt returns the beginning of the document, or the file.
func (s *Skip) Excerpt() Excerpt {
	if s.at.Pos.File == "" {
		return Excerpt{Pos: Pos{File: s.File}}
	}
	return s.at
}

// Note reports that an object missing from the input was found beside it.
type Note struct {
	Kind, Namespace, Name string
	Pos                   Pos
}

func (n Note) String() string {
	return fmt.Sprintf("%s %s/%s is not in the input: using %s", n.Kind, n.Namespace, n.Name, n.Pos.File)
}

// NewSet returns an empty set. Objects without a namespace get the given one, or default.
func NewSet(namespace string) *Set {
	namespace = cmp.Or(namespace, "default")
	s := &Set{
		namespace: namespace,
		data:      map[key][]*Object{},
		byKey:     map[key][]*Object{},
		kinds:     map[groupKind]int{},
		generated: map[Generated]*Object{},
		parsing:   &parsing{namespace: namespace},
		notes:     map[key]Note{},
	}
	s.index = sync.OnceValue(s.newIndex)
	return s
}

// Add reads all documents of one file. If it fails, no object of the file is added.
func (s *Set) Add(file string, data []byte) error {
	b, err := s.parsing.parse(file, data)
	if err == nil {
		s.commit(b)
	}
	return err
}

// parsing is the state that the files of a run share while they are parsed.
type parsing struct {
	namespace string // for objects without one; "default" if empty
	surplus   int    // the sum over the documents
	secrets   *conceal.Values
}

func (p *parsing) parse(file string, data []byte) (*batch, error) {
	b := newBatch(p, file, data)
	if err := b.read(); err != nil {
		return nil, quoted(err, data)
	}
	return b, nil
}

func (s *Set) commit(b *batch) {
	for _, o := range b.objects {
		o, err := s.ready(o)
		if err != nil {
			s.faults = append(s.faults, quoted(err, b.text))
			continue
		}
		s.objects = append(s.objects, o)
		s.byKey[o.key()] = append(s.byKey[o.key()], o)
	}
	for _, o := range b.data {
		s.data[o.key()] = append(s.data[o.key()], o)
	}
	for _, n := range b.flux {
		s.install(n)
	}
	s.versioned = append(s.versioned, b.versioned...)
	s.addGenerated(b.generated)
	for gk, n := range b.kinds {
		s.kinds[gk] += n
	}
	s.skips = append(s.skips, b.skips...)
	s.regrouped = append(s.regrouped, b.regrouped...)
	for _, err := range b.faults {
		s.faults = append(s.faults, quoted(err, b.text))
	}
}

// ready returns an object after decryption and substitution, or the object itself if neither was needed.
func (s *Set) ready(o *Object) (*Object, error) {
	opened, ok := s.opened[o]
	if !ok {
		return o, nil
	}
	if opened.Err != nil {
		return nil, Fault(o, opened.Err)
	}
	c := *o
	c.Content = opened.Content
	return &c, nil
}

func quoted(err error, data []byte) error {
	if parse, ok := errors.AsType[*ParseError](err); ok && parse.code == "" {
		parse.line = lineOf(parse.Pos, data)
	}
	return err
}

// Objects lists the objects of the kept kinds in the order of the input. It leaves out objects that are defined
// twice.
func (s *Set) Objects() []*Object {
	var list []*Object
	for _, o := range s.objects {
		if o.Name == "" || len(s.byKey[o.key()]) == 1 {
			list = append(list, o)
		}
	}
	return list
}

// Skipped counts the Flux objects of known kinds that are not supported, by name.
func (s *Set) Skipped() []KindCount {
	return slices.DeleteFunc(s.Kinds(), func(k KindCount) bool {
		return k.Group != oldestFlux1Group
	})
}

// Kinds counts all objects that were seen, of every kind, by name.
func (s *Set) Kinds() []KindCount {
	var list []KindCount
	for gk, n := range s.kinds {
		list = append(list, KindCount{gk.group, gk.kind, n})
	}
	slices.SortFunc(list, func(a, b KindCount) int {
		return strings.Compare(a.Kind+"."+a.Group, b.Kind+"."+b.Group)
	})
	return list
}

// Skips lists the files and documents that were left out, for debug output.
func (s *Set) Skips() []Skip { return s.skips }

// duplicates reports every object that is defined more than once, in the order of the input. Secrets are checked when
// a reference needs them.
func (s *Set) duplicates() []error {
	var errs []error
	for _, o := range s.objects {
		same := s.byKey[o.key()]
		asked := slices.ContainsFunc(same, func(o *Object) bool { return !o.ReferenceOnly })
		if o.Name != "" && len(same) > 1 && same[0] == o && asked {
			errs = append(errs, duplicate(same))
		}
	}
	return errs
}

func duplicate(same []*Object) *DuplicateError {
	k := same[0].key()
	e := &DuplicateError{Kind: k.kind, Namespace: k.namespace, Name: k.name}
	for _, o := range same {
		e.Places = append(e.Places, o.Pos)
		e.built = append(e.built, o.Built)
		e.last = o
	}
	return e
}

// batch collects the objects of one file until all of the file has been read.
type batch struct {
	parsing        *parsing
	file           string
	text           []byte
	documents      []*document
	count          int
	objects, data  []*Object
	kustomizations []*Object
	generated      []Generator
	flux           []FluxNote
	instances      []*Object // FluxInstances
	operators      []*Object // ResourceSets and their input providers
	versioned      []*Object
	kinds          map[groupKind]int
	skips          []Skip
	faults         []error
	regrouped      []*Object
}

func newBatch(p *parsing, file string, data []byte) *batch {
	return &batch{parsing: p, file: file, text: data, kinds: map[groupKind]int{}}
}

func (b *batch) read() error {
	documents, err := b.cut()
	if err != nil {
		return err
	}
	for d := range documents {
		if err := b.document(d); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) cut() (iter.Seq[*document], error) {
	if len(b.text) > maxFileSize {
		return nil, &ParseError{Pos: Pos{File: b.file}, Msg: fmt.Sprintf("larger than %d MiB", maxFileSize>>20)}
	}
	text, err := decodeText(b.file, b.text)
	if err != nil {
		return nil, err
	}
	b.text = text
	return func(yield func(*document) bool) {
		for c := range split(text) {
			for d := range documents(b.file, c) {
				d.whole = text
				if !yield(d) {
					return
				}
			}
		}
	}, nil
}

func (b *batch) document(d *document) error {
	root, err := d.first()
	if err != nil {
		return asParseError(d, err)
	}
	if root == nil || isNull(root) {
		return nil
	}
	d.index = len(b.documents)
	b.documents = append(b.documents, d)
	if err := b.object(source{d, root}, root, nil, "", ""); err != nil {
		if parse, ok := errors.AsType[*ParseError](err); !ok || !parse.ofDocument {
			return err
		}
		b.faults = append(b.faults, err)
	}
	if b.parsing.surplus += d.surplus; b.parsing.surplus > maxSurplus {
		return d.errorAt(root, "the aliases of all documents together expand to too much")
	}
	return nil
}

// source is a document whose tree is available. The tree is not kept: most documents have no findings.
type source struct {
	*document
	tree *yaml.Node
}

func asParseError(d *document, err error) error {
	if _, ok := errors.AsType[*ParseError](err); ok {
		return err
	}
	return d.errorAt(&yaml.Node{Line: 1, Column: 1}, plainMessage(err))
}

func describe(n *yaml.Node) string {
	if n.Kind == yaml.SequenceNode {
		return "a list"
	}
	return "text"
}

// object adds one object to the batch. The items of a typed List may omit the apiVersion and kind that its kind implies.
func (b *batch) object(src source, n *yaml.Node, path []any, apiVersion, kind string) error {
	if b.count++; b.count > maxDocuments {
		return src.errorAt(n, fmt.Sprintf("more than %d documents in one file", maxDocuments))
	}
	if n = resolve(n); n.Kind != yaml.MappingNode {
		return src.errorAt(n, "expected an object, found "+describe(n))
	}
	if v := scalar(n, "apiVersion"); v != "" {
		apiVersion = v
	}
	if v := scalar(n, "kind"); v != "" {
		kind = v
	}
	o := b.newObject(src, n, path, apiVersion, kind)
	switch classify(apiVersion, kind, n) {
	case ours:
		return b.keep(src, o)
	case data:
		// It is only recorded: an object without references to it may have any content.
		b.data = append(b.data, o)
	case list:
		return b.list(src, n, o)
	case misnamed:
		b.faults = append(b.faults, kindError(o))
	case incomplete:
		b.faults = append(b.faults, src.errorAt(n, missing(apiVersion)+" not set"))
	case noObject:
		b.skips = append(b.skips, Skip{o.Pos.String(), "not a Kubernetes object", o.Excerpt()})
		return nil
	}
	b.kinds[groupKind{o.Group(), kind}]++
	if regrouped(o.Group(), BareKind(o.Kind)) {
		b.regrouped = append(b.regrouped, o)
	}
	switch {
	case isInstance(o):
		b.flux = append(b.flux, FluxNote{scalar(n, "spec", "distribution", "version"), o.Pos})
		b.instances = append(b.instances, o)
	case o.Group() == OperatorGroup && strings.HasPrefix(o.Kind, "ResourceSet"):
		b.operators = append(b.operators, o)
	case isVersioned(o):
		b.versioned = append(b.versioned, o)
	}
	b.generated = append(b.generated, generatedBy(o, nodeTexts(n))...)
	if o.Group() == KustomizeGroup && kind == "Kustomization" {
		return b.kustomization(src, o)
	}
	return nil
}

func (b *batch) kustomization(src source, o *Object) error {
	content, err := src.object(src.tree, o.at.path)
	if err != nil {
		return err
	}
	o.Content = content
	b.kustomizations = append(b.kustomizations, o)
	return nil
}

func missing(apiVersion string) string {
	if apiVersion == "" {
		return "apiVersion"
	}
	return "kind"
}

func (b *batch) newObject(src source, n *yaml.Node, path []any, apiVersion, kind string) *Object {
	o := &Object{
		APIVersion: apiVersion,
		Kind:       Called(apiVersion, kind),
		Namespace:  scalar(n, "metadata", "namespace"),
		Name:       scalar(n, "metadata", "name"),
		Pos:        src.pos(n),
		Secrets:    b.parsing.secrets,
		at:         location{src.document, path},
	}
	if o.Namespace == "" {
		o.Namespace = cmp.Or(b.parsing.namespace, "default")
	}
	return o
}

func (b *batch) keep(src source, o *Object) error {
	content, err := src.object(src.tree, o.at.path)
	if err != nil {
		return err
	}
	content["apiVersion"], content["kind"] = o.APIVersion, BareKind(o.Kind)
	o.Content = content
	b.objects = append(b.objects, o)
	b.flux = append(b.flux, FluxNote{installed(o), o.Pos})
	b.kinds[groupKind{o.Group(), BareKind(o.Kind)}]++
	return nil
}

func (b *batch) list(src source, n *yaml.Node, l *Object) error {
	// Check first that no anchor contains itself, or the loop below would not end.
	if err := src.check(src.tree); err != nil {
		return err
	}
	items := resolve(at(n, "items"))
	if items == nil || isNull(items) {
		return nil
	}
	apiVersion, kind := l.APIVersion, strings.TrimSuffix(l.Kind, "List")
	if kind == "" {
		apiVersion = ""
	}
	for i, item := range items.Content {
		path := append(slices.Clone(l.at.path), "items", i)
		if err := b.object(src, item, path, apiVersion, kind); err != nil {
			return err
		}
	}
	return nil
}
