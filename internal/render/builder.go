package render

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/kustomize"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/resourceset"
)

// builder builds one cluster. One goroutine makes it and uses it, until it returns the Result.
type builder struct {
	*Renderer
	cluster *Cluster

	claimed        map[string]bool             // real paths of files that are part of a build
	closures       []*closure                  // of all builds
	kustomizations map[string]*manifest.Object // Kustomizations that were met, by namespace and name
	waiting        []*flux                     // built, but their variables are not all known
	found          map[string]*datum           // ConfigMaps and Secrets, by kind, namespace and name
	generated      map[string]string           // kinds of the generators of Secrets and ConfigMaps in the cluster, by generated object
	absent         []absence                   // ConfigMaps and Secrets that were needed and not found
	objects        []*manifest.Object
	sources        sources               // that were built
	unset          map[string][]unsetUse // of variables without a value, by name
	spared         map[string]bool       // files of failed builds, read as they are written

	abandoned map[*node]bool

	from       int                      // the start that leads to the current build
	startOf    map[*manifest.Object]int // starts that are Kustomizations, or became one
	superseded map[int]bool             // starts that a build led to
	revisions  map[int]int              // how often a start changed itself
	withdrawn  map[string]int           // how often a source of objects was taken back, by its name

	notices    []Notice
	patched    []*notedPatch
	judged     []*manifest.Object
	errs       []error
	rejections []Rejection
	used       map[Source]bool
	trees      map[Source]string  // directories with the files of sources, which have no Dir here
	partial    []*manifest.Object // of which a part is elsewhere
	alone      bool               // without the cluster that it may be part of
	lostPaths  map[string]bool

	parked     []parked
	entered    bool // all starts of the cluster are in
	expansions []Expansion
	overlay    bool // the current build is a plain directory with a base elsewhere

	sets        []pendingSet
	providers   []inputProvider
	depth       int                  // of the ResourceSets that make what is added
	objectCount int                  // objects that ResourceSets made
	copies      []manifest.Generator // of other objects, in the cluster only
	setBudget   resourceset.Budget
	silenced    []string // namespaces in which unknown objects may exist, "" for all
}

func (c *Cluster) builder() *builder {
	clear(c.r.made)
	return &builder{
		Renderer: c.r, cluster: c, kustomizations: map[string]*manifest.Object{},
		claimed: map[string]bool{}, spared: map[string]bool{}, abandoned: map[*node]bool{}, superseded: map[int]bool{}, revisions: map[int]int{}, startOf: map[*manifest.Object]int{}, withdrawn: map[string]int{}, lostPaths: map[string]bool{},
		found: map[string]*datum{}, generated: map[string]string{}, sources: sources{}, unset: map[string][]unsetUse{}, used: map[Source]bool{}, trees: map[Source]string{},
	}
}

// parked is a Kustomization that waits for its source, with the start that led to it.
type parked struct {
	object *manifest.Object
	from   int
	need   *Need // the source whose tree is missing, nil for a generator that may still be built
}

// pendingSet is a ResourceSet that waits for all other builds, which may add its providers.
type pendingSet struct {
	object *manifest.Object
	from   int
	depth  int // of the sets that made it
}

type inputProvider struct {
	resourceset.Provider
	object *manifest.Object
}

// absence is a ConfigMap or Secret of a Kustomization's variables that was not found when these were needed.
type absence struct {
	flux *flux
	at   int // in spec.postBuild.substituteFrom
	d    *datum
}

type unsetUse struct {
	object *manifest.Object
	pos    manifest.Pos
	hint   string
	open   bool // it stays as it is written
}

// datum holds the values of a ConfigMap or Secret for variables or keys.
type datum struct {
	values    map[string]string
	secret    map[string]bool // the keys of values that are not shown
	kind      string          // the type of a Secret
	sealed    string          // why it cannot be decrypted, with the remedy
	inCluster bool            // the cluster has the key
	built     string          // the name of its Kustomization, "" for a file
}

func (b *builder) notice(n Notice) {
	if n.Object != nil && n.Object.ReferenceOnly {
		return
	}
	if !slices.Contains(b.notices, n) {
		b.notices = append(b.notices, n)
	}
}

func (b *builder) warn(code finding.Code, o *manifest.Object, text, hint string, path ...any) {
	b.notice(Notice{Code: code, Object: o, Excerpt: o.Excerpt(path...), Text: text, Hint: hint})
}

// warnAt is warn without the line, which may contain text that must not be shown.
func (b *builder) warnAt(code finding.Code, o *manifest.Object, text, hint string, pos manifest.Pos) {
	b.notice(Notice{Code: code, Object: o, Excerpt: manifest.Excerpt{Pos: pos}, Text: text, Hint: hint})
}

func (b *builder) warnNamespace(o *manifest.Object, taken string) {
	b.warn(finding.NoNamespace, o, "no namespace, and no kustomization gives it one: taken to be in "+taken, "", "metadata", "name")
}

// taken reports whether a file does not count as a plain file: it is built, belongs to another cluster, or is not applied.
func (b *builder) taken(path string) bool {
	return b.claimed[path] || b.cluster.foreign(path) || b.plan != nil && !b.plan.live(path)
}

// plainDirectory builds a directory that no Kustomization leads to, as kubectl apply -k would.
func (b *builder) plainDirectory(dir string) {
	r := b.repository(dir)
	d := r.directory(dir)
	f, c := &flux{object: d.object, repo: r, path: dir}, newClosure()
	result := b.buildPlain(f, c)
	by := d.object.Pos.File
	c.of = by
	b.claim(c)
	if result.err != nil {
		b.directoryFailed(r, d, c, result.err)
		return
	}
	if len(result.patches) > 0 && b.ours(r, c) {
		b.notePatches(r, nil, result.patches)
	}
	f.objects = result.objects
	b.show(f, c, nil, nil)
	b.warnRemote(c)
	since := b.withdrawn[by]
	b.overlay = c.overlay()
	defer func() { b.overlay = false }()
	for _, o := range f.objects {
		if b.withdrawn[by] != since {
			return
		}
		b.finishPlain(r, d, o, by)
	}
}

// directoryFailed reports the error of a directory. If the directory has no object of Flux, this is a notice: Flux may not use it.
func (b *builder) directoryFailed(r *repository, d *directory, c *closure, err error) {
	if lost := b.abandon(c); !lost && !b.touches(c) {
		return
	}
	if parse := c.unparsed(err); parse != nil {
		b.errs = append(b.errs, spoiledBy(parse, d.object.Pos.File, err))
		return
	}
	failed := newBuildError(d.object.Pos.File, err)
	_, outside := errors.AsType[*outsideError](err)
	_, endless := errors.AsType[*endlessError](err)
	if b.ctx.Err() == nil && !outside && !endless && (!b.ours(r, c) || b.forOthers(err)) {
		b.notice(Notice{Code: finding.ForeignBuild, Object: d.object, Excerpt: failed.at, Text: failed.text(), Hint: cmp.Or(finding.Hints(err)...)})
		return
	}
	b.errs = append(b.errs, failed)
}

// forOthers reports whether a build that no Kustomization leads to needs helm, which Flux does not run. If the input has
// Kustomizations, such a directory is for another program.
func (b *builder) forOthers(err error) bool {
	return errors.Is(err, kustomize.ErrNoHelm) && slices.ContainsFunc(b.plan.nodes, func(n *node) bool { return n.object != nil })
}

// abandon claims the nodes that a failed build would have led to, because they mean something different alone. Another start is
// not affected and is built. A node that is there for references only is better than no node. abandon reports whether the input
// is about any of them.
func (b *builder) abandon(c *closure) (lost bool) {
	b.spare(c)
	for i, n := range b.plan.nodes {
		if b.abandoned[n] || !c.files[n.file] {
			continue
		}
		b.abandoned[n] = true
		if b.cluster.begunByOther(i) {
			continue
		}
		if n.begins {
			from := b.from
			b.start(i)
			b.from = from
			continue
		}
		b.claim(n.claims)
		lost = b.abandon(n.claims) || b.passed != nil && b.touches(n.claims) || lost
	}
	return lost
}

func (b *builder) ours(r *repository, c *closure) bool {
	for path := range c.files {
		f, err := r.file(path)
		if err != nil || f.MentionsFlux() {
			return true
		}
	}
	return false
}

func (b *builder) finishPlain(r *repository, d *directory, o built, by string) {
	content := o.content
	obj := b.origin(r, d.file, content, o.file, by)
	shown := visibleOf(o)
	if sealed(content) {
		opened, err := b.decrypter().object(content)
		if err != nil {
			b.sealedObject(obj, err)
			return
		}
		shown = withoutSecrets(content, opened, shown)
		content = opened
	}
	s, err := b.substitutePlain(obj, content, shown)
	if err != nil {
		b.fault(obj, err)
		return
	}
	b.noteUnset(obj, s.unset, "", false)
	b.emit(obj, s.content)
}

func (b *builder) claim(c *closure) {
	b.closures = append(b.closures, c)
	for _, d := range c.dirs {
		b.judged = append(b.judged, d.object)
	}
	for path := range c.files {
		b.claimed[path] = true
	}
}

func (b *builder) warnRemote(c *closure) {
	for _, remote := range c.remote {
		b.partial = append(b.partial, remote.in)
		b.warnAt(finding.RemoteResource, remote.in, remote.String(), "", remote.pos)
	}
}

// rest builds the directories that no Kustomization led to after all: the Kustomization that should have led there is missing
// from the built objects.
func (b *builder) rest() {
	for _, dir := range b.in.Dirs {
		real, err := b.disk.absolute(dir)
		if err != nil || !b.plan.live(real) {
			continue
		}
		d := b.repository(real).directory(real)
		if d == nil || d.flux || b.taken(d.file) || d.kustomization != nil && d.kustomization.Kind == types.ComponentKind {
			continue
		}
		b.plainDirectory(real)
	}
	b.plainSets()
	b.entered = true
	b.finishAll()
}

// kustomization builds a Kustomization. The resulting objects wait for their variables.
func (b *builder) kustomization(o *manifest.Object) {
	key := o.Namespace + "/" + o.Name
	if first, met := b.kustomizations[key]; met {
		if !b.revises(first, o) {
			if first.Pos != o.Pos && !sameSpec(first, o) {
				b.errs = append(b.errs, &finding.Problem{
					Text:   fmt.Sprintf("Kustomization %s is defined 2 times: %s and %s", key, first.Pos, o.Pos),
					Advice: "leave it out of one of them, or, if they belong to different clusters, name the directory of one with -f",
				})
			}
			return
		}
	}
	b.kustomizations[key] = o
	b.judged = append(b.judged, o)
	if err := b.admit(o); err != nil {
		return
	}
	b.locateOrPark(o)
}

func (b *builder) construct(f *flux) {
	o := f.object
	if f.source != nil {
		b.used[*f.source] = true
	}
	b.noteTree(f)
	if f.made != nil {
		for _, s := range f.made.used {
			b.used[s] = true
		}
	}
	c := newClosure()
	f.from, f.since = b.from, b.withdrawn[f.name()]
	file, k, err := f.kustomization(c)
	c.of = f.name()
	b.claim(c)
	b.supersede(f, c)
	b.concernBuilt(o, c)
	if err == nil {
		err = f.complete(c)
	}
	var replace, shown map[string][]byte
	if err == nil && f.spec.Decryption != nil {
		replace, shown, err = b.keysOf(f).replacements(c, b.display)
	}
	if err == nil {
		f.objects, err = b.buildDecrypted(f, file, k, replace)
	}
	if err != nil {
		if n := b.plan.nodes[f.from]; n.begins && n.object == o {
			b.spared[n.file] = true // it is applied by hand
		}
		if lost := b.abandon(c); lost || b.touches(c) || !o.ReferenceOnly {
			b.failed(f, c, err)
		}
		return
	}
	b.show(f, c, replace, shown)
	b.warnRemote(c)
	b.warnUnknown(f)
	b.noticeRenamed(f)
	b.warnLinks(o, c)
	if f.spec.Suspend {
		b.notice(Notice{Object: o, Text: "suspended: built all the same"})
	}
	for _, o := range f.objects {
		b.addGenerated(o.content)
	}
	b.waiting = append(b.waiting, f)
}

// warnUnknown reports the fields that the controller drops where it edits the kustomization file.
func (b *builder) warnUnknown(f *flux) {
	d := f.repo.directory(f.path)
	if d == nil {
		return
	}
	for _, unknown := range d.unknown {
		text := fmt.Sprintf("of %s: %v: kustomize-controller drops the field, and kustomize refuses the file", f.name(), unknown.err)
		b.warnAt(finding.UnknownKustomizeField, d.object, text, "correct the name of the field, or remove it", unknown.at.Pos)
	}
}

// admit records and returns the error with which the API server refuses an object. It does not check old API versions.
func (b *builder) admit(o *manifest.Object) error {
	if b.o.Admit == nil || o.APIVersion != kustomizev1.GroupVersion.String() {
		return nil
	}
	err := b.o.Admit(o)
	if err == nil {
		return nil
	}
	if lost := b.lose(o); lost || !o.ReferenceOnly {
		b.rejections = append(b.rejections, Rejection{o, err})
	}
	return err
}

// buildDecrypted builds with decrypted files. An error may quote them, so the error of a build without them is returned instead,
// or one without details.
func (b *builder) buildDecrypted(f *flux, file string, k *types.Kustomization, replace map[string][]byte) ([]built, error) {
	result := b.buildOnce(f.repo, f.path, file, k, replace)
	if err := result.err; err == nil || len(replace) == 0 || b.ctx.Err() != nil {
		b.notePatches(f.repo, f.object, result.patches)
		return result.objects, err
	}
	if err := b.buildOnce(f.repo, f.path, file, k, nil).err; err != nil {
		return nil, err
	}
	var names []string
	for _, path := range slices.Sorted(maps.Keys(replace)) {
		names = append(names, b.display(path))
	}
	return nil, fmt.Errorf("a file that SOPS encrypted cannot be used; what is wrong with it is not shown, because that may quote it: look at %s with sops decrypt", strings.Join(names, ", "))
}

func (b *builder) failed(f *flux, c *closure, err error) {
	if parse := c.unparsed(err); parse != nil {
		b.errs = append(b.errs, spoiledBy(parse, f.name(), err))
		return
	}
	if _, reported := errors.AsType[*manifest.ObjectError](err); reported {
		b.errs = append(b.errs, err)
		return
	}
	b.silenced = append(b.silenced, f.spec.TargetNamespace) // the missing objects may be referred to
	at := f.object.Excerpt("spec", "path")
	if placed := deepestMistake(err); placed != nil {
		at, err = placed.at, placed.err
	} else if patch, ok := errors.AsType[*specPatchError](err); ok {
		at = f.object.Excerpt("spec", "patches", patch.index)
	}
	b.errs = append(b.errs, manifest.FaultAt(f.object, at, &buildError{err: err}))
}

func (b *builder) unbuilt(o *manifest.Object, err error) {
	if _, unmade := errors.AsType[*unmadeError](err); unmade {
		b.partial = append(b.partial, o)
		_ = b.lose(o)
		return
	}
	if elsewhere, ok := errors.AsType[*elsewhereError](err); ok {
		b.partial = append(b.partial, o)
		if o.ReferenceOnly {
			return
		}
		if g := elsewhere.generator; g != nil {
			b.warn(finding.SourceElsewhere, g, elsewhere.Error(), elsewhere.Hint(), "spec", "sources", elsewhere.at)
			return
		}
		text := elsewhere.Error()
		if at := b.pathHere(o); !b.plan.known && at != "" && b.named[b.rootOf(at)] != "" {
			text += ", and the files at its path are read as they are"
		} else if !b.plan.known {
			text += ", and its path is not looked at"
		}
		b.warn(finding.SourceElsewhere, o, text, elsewhere.Hint(), "spec", "sourceRef")
		return
	}
	if lost := b.lose(o); o.ReferenceOnly && !lost {
		return
	}
	if _, reported := errors.AsType[*manifest.ObjectError](err); !reported {
		err = manifest.Fault(o, err, "spec")
	}
	b.errs = append(b.errs, err)
}

// origin returns the object for built content, with the position where it was written.
func (b *builder) origin(r *repository, fallback string, content map[string]any, file, by string) *manifest.Object {
	pos := manifest.Pos{File: r.display(cmp.Or(file, fallback))}
	o := manifest.NewBuilt(content, r.written(file, content), pos)
	o.Secrets = b.o.Secrets
	o.Built, o.ReferenceOnly = by, b.passed != nil && !b.concerned[r.original(cmp.Or(file, fallback))]
	return o
}

func (b *builder) fault(o *manifest.Object, err error) {
	lost := o.Group() == manifest.KustomizeGroup && o.Kind == "Kustomization" && b.lose(o)
	if o.ReferenceOnly && !lost {
		return
	}
	b.errs = append(b.errs, b.faultOf(o, err))
}

// faultOf places an error at the variable that it is about, if any.
func (b *builder) faultOf(o *manifest.Object, err error) error {
	var path []any
	if unset, ok := errors.AsType[*unsetError](err); ok {
		if path = unset.path; path == nil {
			path = pathOf(o, unset.name)
		}
	}
	return manifest.Fault(o, err, path...)
}
