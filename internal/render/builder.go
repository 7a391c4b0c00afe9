package render

import (
	"cmp"
	"slices"

	"github.com/helmsrc/helmsrc/internal/finding"
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
	readAsWritten  map[string]bool       // files of failed builds, read as they are written

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
		claimed: map[string]bool{}, readAsWritten: map[string]bool{}, abandoned: map[*node]bool{}, superseded: map[int]bool{}, revisions: map[int]int{}, startOf: map[*manifest.Object]int{}, withdrawn: map[string]int{}, lostPaths: map[string]bool{},
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
	b.warn(finding.NoNamespace, o, "no namespace, and no kustomization sets one: assumed to be in "+taken, "", "metadata", "name")
}

// taken reports whether a file does not count as a plain file: it is built, belongs to another cluster, or is not applied.
func (b *builder) taken(path string) bool {
	return b.claimed[path] || b.cluster.foreign(path) || b.plan != nil && !b.plan.live(path)
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

// origin returns the object for built content, with the position where it was written.
func (b *builder) origin(r *repository, fallback string, content map[string]any, file, by string) *manifest.Object {
	pos := manifest.Pos{File: r.display(cmp.Or(file, fallback))}
	o := manifest.NewBuilt(content, r.written(file, content), pos)
	o.Secrets = b.o.Secrets
	o.Built, o.ReferenceOnly = by, b.passed != nil && !b.concerned[r.original(cmp.Or(file, fallback))]
	return o
}
