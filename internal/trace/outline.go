package trace

import (
	"cmp"
	"errors"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/outline"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/render"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/store"
)

// Outline is the graph of a cluster's objects.
type Outline struct {
	Root     *outline.Node
	tracer   Tracer
	in       *load.Input
	known    map[store.Key]report.Object
	builders map[string]*outline.Node // by the name in Object.Built
	nodes    map[*manifest.Object]*outline.Node
	parents  map[*outline.Node]*outline.Node // of nodes with a single place
	missing  map[store.Key]*outline.Node
	used     map[*outline.Node]bool // nodes to which an object refers
}

// Outline returns the outline of a cluster: Kustomizations with the objects that they build, releases with their charts, charts
// with their sources. Objects that no release uses are below their builder. Known are the objects of earlier runs.
func (t Tracer) Outline(in *load.Input, known []report.Object) *Outline {
	o := &Outline{
		tracer: t, in: in, known: map[store.Key]report.Object{},
		Root:     &outline.Node{Kind: outline.Cluster, Name: called(in)},
		builders: map[string]*outline.Node{}, nodes: map[*manifest.Object]*outline.Node{}, parents: map[*outline.Node]*outline.Node{},
		missing: map[store.Key]*outline.Node{}, used: map[*outline.Node]bool{},
	}
	for _, k := range known {
		o.known[store.Key{Kind: k.Kind, Namespace: k.Namespace, Name: k.Name}] = k
	}
	o.kustomizations()
	o.objects()
	return o
}

// called returns the name of a cluster in outlines: a cluster at the root of a repository has no name.
func called(in *load.Input) string {
	if in.Called == "" || in.Called == "." {
		return "the input"
	}
	return in.Called
}

// Selected returns the nodes that the arguments and the namespace of the input select, with their ancestors.
func (o *Outline) Selected() []*outline.Node {
	if len(o.in.Selectors) == 0 && o.in.Namespace == "" {
		return []*outline.Node{o.Root}
	}
	asked := map[*outline.Node]bool{}
	for obj, n := range o.nodes {
		asked[n] = obj.Origin == nil && o.in.Asked(obj)
	}
	return outline.Keep([]*outline.Node{o.Root}, func(n *outline.Node) bool { return asked[n] })
}

// Invalid returns the selected objects that the API server would refuse, in the order of the input.
func (o *Outline) Invalid() []*manifest.Object {
	var list []*manifest.Object
	for _, obj := range o.in.Inventory.Objects() {
		if n := o.nodes[obj]; n != nil && n.State == outline.Invalid && o.in.Asked(obj) {
			list = append(list, obj)
		}
	}
	return list
}

// Path returns the ancestors of an object, and its sources, with notes about their values and versions.
func (o *Outline) Path(obj *manifest.Object, a *Answer) []*outline.Node {
	n := o.nodes[obj]
	for _, d := range a.Decided {
		n.Notes = append(n.Notes, outline.Note{Text: d.Field + ": set by " + d.By})
	}
	for _, s := range a.Sources {
		of := o.nodes[s.object]
		if of == nil {
			continue
		}
		if s.Login != "" {
			of.Notes = append(of.Notes, outline.Note{Text: "login: " + s.Login})
		}
		if s.Verification != "" {
			of.Notes = append(of.Notes, outline.Note{Text: "signature: " + s.Verification})
		}
	}
	if of := o.nodes[a.published]; of != nil && a.Version != nil {
		for _, c := range a.Version.Candidates {
			mark := outline.Left
			if c.Version == a.Version.Chosen {
				mark, of.Version = outline.Taken, c.Version
			}
			of.Notes = append(of.Notes, outline.Note{Mark: mark, Text: c.Version + "  " + c.Because})
		}
	}
	if a.Problem != "" && n.Message == "" {
		n.Message = a.Problem
	}
	return outline.Keep([]*outline.Node{o.Root}, func(other *outline.Node) bool { return other == n })
}

// kustomizations adds the Kustomizations of Flux, each below its builder.
func (o *Outline) kustomizations() {
	var all []*manifest.Object
	for _, obj := range o.in.Rendered.Judged {
		if obj.Group() == manifest.KustomizeGroup && o.nodes[obj] == nil {
			all = append(all, obj)
			o.builders[obj.String()] = o.node(obj)
		}
	}
	for _, obj := range all {
		o.put(o.nodes[obj], o.builderOf(obj))
	}
}

// builderOf returns the node by which an object was built or made.
func (o *Outline) builderOf(obj *manifest.Object) *outline.Node {
	if from := obj.Origin; from != nil {
		for from.Origin != nil && from.Origin.String() == from.String() { // an object of a set may come from the same set twice
			from = from.Origin
		}
		n, met := o.nodes[from]
		if !met {
			n = o.node(from)
			o.put(n, o.builderOf(from))
		}
		return n
	}
	if obj.Built == "" {
		return o.Root
	}
	n := o.builders[obj.Built]
	if n == nil {
		n = &outline.Node{Kind: outline.File, Name: obj.ConcealText(obj.Built)}
		o.builders[obj.Built] = n
		o.put(n, o.Root)
	}
	return n
}

// put adds a node below another, or below the cluster if that would be a cycle: the Kustomization of flux bootstrap builds
// itself.
func (o *Outline) put(n, parent *outline.Node) {
	for up := parent; up != nil; up = o.parents[up] {
		if up == n {
			parent = o.Root
			break
		}
	}
	o.parents[n] = parent
	parent.Children = append(parent.Children, n)
}

// node returns the node of an object.
func (o *Outline) node(obj *manifest.Object) *outline.Node {
	if n := o.nodes[obj]; n != nil {
		return n
	}
	called := o.tracer.Console.Called(console.ObjectSubject(obj))
	n := &outline.Node{Kind: called.Kind, Namespace: called.Namespace, Name: called.Name, File: obj.Pos.String()}
	o.nodes[obj] = n
	text := func(path ...any) string {
		s, _ := manifest.ValueAt(obj.Content, append([]any{"spec"}, path...)).(string)
		return obj.ConcealError(obj.Veil(s)) // concealed as in messages
	}
	switch {
	case obj.Group() == manifest.KustomizeGroup:
		n.Path = obj.ConcealText(cmp.Or(text("path"), "./"))
	case obj.Kind == sourcev1.HelmChartKind:
		n.Chart, n.Constraint = text("chart"), cmp.Or(text("version"), "*")
	default:
		n.URL = obj.ConcealError(auth.RedactText(cmp.Or(text("url"), text("endpoint"))))
		n.Constraint = cmp.Or(text("ref", "digest"), text("ref", "semver"), text("ref", "tag"), text("ref", "commit"), text("ref", "name"), text("ref", "branch"))
	}
	if suspended := manifest.At[bool](obj.Content, "spec", "suspend"); suspended {
		n.State = outline.Suspended
	}
	o.knownOf(n, obj)
	return n
}

// knownOf adds the state and version of an earlier run.
func (o *Outline) knownOf(n *outline.Node, obj *manifest.Object) {
	k, ok := o.known[store.Key{Kind: obj.Kind, Namespace: obj.Namespace, Name: obj.Name}]
	if !ok {
		namespace, name := obj.StoredAs()
		if k, ok = o.known[store.Key{Kind: obj.Kind, Namespace: namespace, Name: name}]; !ok {
			return
		}
	}
	n.State, n.Version = k.State, cmp.Or(k.Version, k.Revision)
	if k.State == report.StateFailed {
		n.Message = k.Message
	}
}

// objects adds releases with their sources, and then objects that no release uses.
func (o *Outline) objects() {
	var all []*manifest.Object
	for _, obj := range o.in.Inventory.Objects() {
		if !obj.ReferenceOnly && reconcile.Kinds().Supports(obj) {
			all = append(all, obj)
		}
	}
	o.in.Inventory.AdmitAll(all)
	for _, obj := range all {
		for _, source := range o.sourcesOf(obj) {
			n := o.node(obj)
			n.Children = append(n.Children, source)
			o.used[source] = true
		}
	}
	for _, obj := range all {
		if n := o.node(obj); !o.used[n] {
			o.put(n, o.builderOf(obj))
		}
	}
}

// sourcesOf returns the nodes of the objects that an object refers to.
func (o *Outline) sourcesOf(obj *manifest.Object) []*outline.Node {
	adm, err := o.in.Inventory.Admit(obj)
	if err != nil {
		n := o.node(obj)
		n.State, n.Message = outline.Invalid, obj.ConcealText(err.Error())
		return nil
	}
	var nodes []*outline.Node
	if generator, ok := adm.Typed.(*swv1.ArtifactGenerator); ok {
		for _, s := range generator.Spec.Sources {
			nodes = append(nodes, o.reference(adm, s.Kind, cmp.Or(s.Namespace, obj.Namespace), s.Name))
		}
		return nodes
	}
	kind, namespace, name, ok := reconcile.Kinds().SourceRef(adm)
	if release, isRelease := adm.Typed.(*helmv2.HelmRelease); isRelease && release.Spec.Chart != nil && o.in.Inventory.Derivations().Chart(obj) == nil {
		// The release is suspended or refused: no HelmChart is made from it.
		template := release.Spec.Chart.Spec
		n := o.node(obj)
		n.Chart, n.Constraint = obj.ConcealError(obj.Veil(template.Chart)), obj.ConcealError(obj.Veil(cmp.Or(template.Version, "*")))
		kind, namespace, name = template.SourceRef.Kind, cmp.Or(template.SourceRef.Namespace, obj.Namespace), template.SourceRef.Name
	}
	if ok {
		nodes = append(nodes, o.reference(adm, kind, namespace, name))
	}
	return nodes
}

// reference returns the node of a reference. An ExternalArtifact has its generator as a child.
func (o *Outline) reference(adm *admission.Admitted, kind, namespace, name string) *outline.Node {
	found, err := o.in.Inventory.Find(kind, namespace, name)
	if rejected, ok := errors.AsType[*inventory.RejectedError](err); ok {
		return o.node(rejected.Object)
	}
	if err != nil {
		return o.absent(adm, kind, namespace, name)
	}
	n := o.node(found.Object)
	if made := found.Object; made.Kind == sourcev1.ExternalArtifactKind && made.Origin != nil && len(n.Children) == 0 {
		generator := o.node(made.Origin)
		n.Children = append(n.Children, generator)
		o.used[generator] = true
	}
	return n
}

// absent returns the node of an object that is not in the input: it is missing, or the cluster's name for this repository.
func (o *Outline) absent(adm *admission.Admitted, kind, namespace, name string) *outline.Node {
	key := store.NewKey(kind, namespace, name)
	if n := o.missing[key]; n != nil {
		return n
	}
	called := o.tracer.Console.Called(console.Subject{Kind: kind, Namespace: namespace, Name: name})
	n := &outline.Node{Kind: called.Kind, Namespace: called.Namespace, Name: adm.Object.VeilField(called.Name), State: outline.Missing}
	here := func(s render.Source) bool { return s.Kind == kind && s.Namespace == namespace && s.Name == name }
	if slices.ContainsFunc(o.in.Rendered.Here, here) {
		n.State, n.Message = "", "this repository"
	}
	o.missing[key] = n
	return n
}
