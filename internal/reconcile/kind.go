package reconcile

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
)

// kind is everything that the rest of the package knows about one kind of object: see Kinds. Kinds have no state: one
// value serves all objects of all runs.
type kind struct {
	group, name, plural, short string

	source bool   // other objects refer to it
	link   string // name of the link to the newest artifact, "" for none
	// listed kinds have versions to list, of themselves or of others.
	listed bool
	// noArtifact kinds store nothing: an object is well as long as it waits for a cluster.
	noArtifact bool
	// settled reports that an object without an artifact waits for nothing all the same: it is ready.
	settled bool

	empty func() any          // a new typed object
	clone func(typed any) any // a deep copy of one
	parts func(typed any) parts
	begin func(p *reconciliation) objectSteps

	// folds makes conditions of an outcome, nil for those of a source; makes events of it.
	folds func(status.Previous, status.Outcome, time.Time) ([]metav1.Condition, int64)
	makes func(status.Outcome) []status.Event
}

// parts are what all kinds have in their own types.
type parts struct {
	status                                  any // the whole
	generation                              *int64
	conditions                              *[]metav1.Condition
	artifact                                **meta.Artifact
	url, handled                            *string
	saved                                   func() // after the others have changed
	suspended                               bool   // spec.suspend
	static                                  bool   // it has no status by design
	sourceKind, sourceNamespace, sourceName string // "" for the object's own namespace, and for no source
}

// kindOf is a kind whose objects are of a Go type.
func kindOf[T any, P interface {
	*T
	DeepCopy() *T
}](k kind, of func(P) parts, begin func(*reconciliation, P) objectSteps) *kind {
	k.empty = func() any { return P(new(T)) }
	k.clone = func(typed any) any { return P(typed.(P).DeepCopy()) }
	k.parts = func(typed any) parts { return of(typed.(P)) }
	k.begin = func(p *reconciliation) objectSteps { return begin(p, p.typed.(P)) }
	return &k
}

func (k *kind) load(typed any) commonStatus {
	p := k.parts(typed)
	return commonStatus{valueOf(p.generation), valueOf(p.conditions), valueOf(p.artifact), valueOf(p.url), valueOf(p.handled)}
}

func (k *kind) save(typed any, s commonStatus) {
	p := k.parts(typed)
	set(p.generation, s.observedGeneration)
	set(p.conditions, s.conditions)
	set(p.artifact, s.artifact)
	set(p.url, s.url)
	set(p.handled, s.handled)
	if p.saved != nil {
		p.saved()
	}
}

// valueOf and set leave out what a kind does not have.
func valueOf[T any](at *T) (value T) {
	if at != nil {
		value = *at
	}
	return value
}

func set[T any](at *T, value T) {
	if at != nil {
		*at = value
	}
}

// fold and midway make conditions of an outcome: of the last one, or of what an observer would see before anything is stored.
func (k *kind) fold(prev status.Previous, out status.Outcome, now time.Time) ([]metav1.Condition, int64) {
	if k.folds != nil {
		return k.folds(prev, out, now)
	}
	return status.Fold(k.name, prev, out, now)
}

func (k *kind) midway(prev status.Previous, out status.Outcome, now time.Time) ([]metav1.Condition, int64) {
	if k.folds != nil {
		return k.folds(prev, out, now)
	}
	return status.Midway(prev, out, now)
}

func (k *kind) events(prev status.Previous, out status.Outcome) []status.Event {
	if k.makes != nil {
		return k.makes(out)
	}
	return status.Events(prev, out)
}

// objectSteps are what is particular to the reconciliation of one object. They fill the
// reconciliation that they were made with, and end with it.
type objectSteps interface {
	// choose finds out what the spec resolves to now, verified as far as it requires, and
	// downloads no archive but what that takes. It returns what is left to do, nil for nothing.
	// An error becomes the outcome's failure.
	choose(ctx context.Context) (*remainder, error)
}

// chartProvider and treeProvider are the steps of objects that have something for others, once all else is over. What they
// return stays until the run ends; they are safe for many goroutines.
type (
	chartProvider interface {
		charts(ctx context.Context, w *remarks) (charts, error)
	}
	treeProvider interface {
		tree(ctx context.Context) (*sourceTree, error)
	}
)

// remainder is what is left to do for an object once its spec is resolved. A run
// does one of the two.
type remainder struct {
	// compare reports what a controller would see now, before it fetches. Nothing is stored.
	compare func(ctx context.Context) error
	// fetch takes what was chosen into storage.
	fetch func(ctx context.Context) error
}

// commonStatus is the part of a status that all kinds have. URLs are computed when it is
// printed, and are never remembered.
type commonStatus struct {
	observedGeneration int64
	conditions         []metav1.Condition
	artifact           *meta.Artifact
	url                string // not of all kinds
	handled            string // lastHandledReconcileAt
}

func noStatus() commonStatus { return commonStatus{observedGeneration: -1} }

// Table lists kinds, sources first.
type Table []*kind

// find finds a kind by its API group and name: a name alone says nothing, k3s has
// a HelmChart too.
func (t Table) find(group, name string) (*kind, bool) {
	for _, k := range t {
		if k.group == group && k.name == name {
			return k, true
		}
	}
	return nil, false
}

func (t Table) of(obj *manifest.Object) (*kind, bool) { return t.find(obj.Group(), obj.Kind) }

func (t Table) rank(name string) int {
	return slices.IndexFunc(t, func(k *kind) bool { return k.name == name })
}

// Names are the names of the kinds.
func (t Table) Names() []string {
	var names []string
	for _, k := range t {
		names = append(names, k.name)
	}
	return names
}

// WithoutArtifact are the names of those whose objects store nothing.
func (t Table) WithoutArtifact() []string {
	var names []string
	for _, k := range t {
		if k.noArtifact {
			names = append(names, k.name)
		}
	}
	return names
}

// Supports reports whether the object is of one of the kinds.
func (t Table) Supports(obj *manifest.Object) bool {
	_, ok := t.of(obj)
	return ok
}

// IsSource reports whether objects of this kind provide charts.
func (t Table) IsSource(name string) bool {
	k, ok := t.find(inventory.GroupOf(name), name)
	return ok && k.source
}

// Link is the name of the link to the newest artifact of a kind, "" for none.
func (t Table) Link(name string) string {
	k, _ := t.find(inventory.GroupOf(name), name)
	if k == nil {
		return ""
	}
	return k.link
}

// Named finds a kind by its name, plural or short name, in any case, with or
// without the API group.
func (t Table) Named(text string) (string, bool) {
	text, group, qualified := strings.Cut(strings.ToLower(text), ".")
	for _, k := range t {
		if qualified && group != k.group {
			continue
		}
		if text == strings.ToLower(manifest.BareKind(k.name)) || text == k.plural || text == k.short {
			return k.name, true
		}
	}
	return "", false
}

// SourceRef names the source that an object refers to.
func (t Table) SourceRef(adm *admission.Admitted) (kind, namespace, name string, ok bool) {
	k, known := t.of(adm.Object)
	if !known {
		return "", "", "", false
	}
	p := k.parts(adm.Typed)
	return p.sourceKind, cmp.Or(p.sourceNamespace, adm.Object.Namespace), p.sourceName, p.sourceKind != ""
}
