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

// kind is everything that the rest of the package knows about one kind of object. A further
// kind is a type that implements it, and one line in Kinds. Kinds have no state: one value
// serves all objects of all runs.
type kind interface {
	about() kindInfo

	// empty returns a new typed object, clone a deep copy of one.
	empty() any
	clone(typed any) any
	// whole returns a pointer to the status of a typed object; load and save copy the part
	// of it that all kinds have.
	whole(typed any) any
	load(typed any) commonStatus
	save(typed any, s commonStatus)

	// suspended is spec.suspend.
	suspended(typed any) bool
	// static reports that an object has no status by design.
	static(typed any) bool
	// sourceRef names the source of an object. An empty namespace is the object's own, an
	// empty kind no source at all.
	sourceRef(typed any) (kind, namespace, name string)

	// fold and midway make conditions of an outcome: of the last one, or of what an observer
	// would see before anything is stored. events makes events of it.
	fold(status.Previous, status.Outcome, time.Time) ([]metav1.Condition, int64)
	midway(status.Previous, status.Outcome, time.Time) ([]metav1.Condition, int64)
	events(status.Previous, status.Outcome) []status.Event

	// begin returns what is particular to the reconciliation of an object of the kind.
	begin(p *reconciliation) objectSteps
}

// objectSteps are what is particular to the reconciliation of one object. They fill the
// reconciliation that they were made with, and end with it.
type objectSteps interface {
	// choose finds out what the spec asks for now, verified as far as that is asked for, and
	// downloads no archive but what that takes. It returns what is left to do, nil for nothing.
	// An error becomes the outcome's failure.
	choose(ctx context.Context) (*remainder, error)
	// source is what the object holds for others, once all else is over.
	source() Source
}

// remainder is what is left to do for an object once it is known what its spec asks for. A run
// does one of the two.
type remainder struct {
	// compare reports what a controller would see now, before it fetches. Nothing is stored.
	compare func(ctx context.Context) error
	// fetch takes what was chosen into storage.
	fetch func(ctx context.Context) error
}

// kindInfo is what holds for all objects of a kind, and what most kinds have in common.
type kindInfo struct {
	group  string
	name   string
	plural string
	short  string
	source bool   // other objects refer to it
	link   string // name of the link to the newest artifact, "" for none
	// listed kinds have versions to list, of themselves or of others.
	listed bool
	// noArtifact kinds store nothing: an object is well as long as it waits for a cluster.
	noArtifact bool
	// settled reports that an object without an artifact waits for nothing all the same: it is ready.
	settled bool
}

func (k kindInfo) about() kindInfo { return k }

func (k kindInfo) static(any) bool { return false }

func (k kindInfo) sourceRef(any) (kind, namespace, name string) { return "", "", "" }

func (k kindInfo) fold(prev status.Previous, out status.Outcome, now time.Time) ([]metav1.Condition, int64) {
	return status.Fold(k.name, prev, out, now)
}

func (k kindInfo) midway(prev status.Previous, out status.Outcome, now time.Time) ([]metav1.Condition, int64) {
	return status.Midway(prev, out, now)
}

func (k kindInfo) events(prev status.Previous, out status.Outcome) []status.Event {
	return status.Events(prev, out)
}

// goType is what the Go type of a kind's objects decides.
type goType[T any, P interface {
	*T
	DeepCopy() *T
}] struct{}

func (goType[T, P]) empty() any { return P(new(T)) }

func (goType[T, P]) clone(typed any) any { return P(typed.(P).DeepCopy()) }

// commonStatus is the part of a status that all kinds have. URLs are computed when it is
// printed, and are never remembered.
type commonStatus struct {
	observedGeneration int64
	conditions         []metav1.Condition
	artifact           *meta.Artifact
	url                string // not of all kinds
	handled            string // lastHandledReconcileAt
}

// noStatus is that of an object that was not looked at yet.
func noStatus() commonStatus { return commonStatus{observedGeneration: -1} }

// Table lists kinds, sources first.
type Table []kind

// find finds a kind by its API group and name: a name alone says nothing, k3s has
// a HelmChart too.
func (t Table) find(group, name string) (kind, bool) {
	for _, k := range t {
		if info := k.about(); info.group == group && info.name == name {
			return k, true
		}
	}
	return nil, false
}

func (t Table) of(obj *manifest.Object) (kind, bool) { return t.find(obj.Group(), obj.Kind) }

func (t Table) rank(name string) int {
	return slices.IndexFunc(t, func(k kind) bool { return k.about().name == name })
}

// Names are the names of the kinds.
func (t Table) Names() []string {
	var names []string
	for _, k := range t {
		names = append(names, k.about().name)
	}
	return names
}

// WithoutArtifact are the names of those whose objects store nothing.
func (t Table) WithoutArtifact() []string {
	var names []string
	for _, k := range t {
		if info := k.about(); info.noArtifact {
			names = append(names, info.name)
		}
	}
	return names
}

// Supports reports whether the object is of one of the kinds.
func (t Table) Supports(obj *manifest.Object) bool {
	_, ok := t.of(obj)
	return ok
}

// IsSource reports whether objects of this kind hold what charts are made of.
func (t Table) IsSource(name string) bool {
	k, ok := t.find(inventory.GroupOf(name), name)
	return ok && k.about().source
}

// Link is the name of the link to the newest artifact of a kind, "" for none.
func (t Table) Link(name string) string {
	k, _ := t.find(inventory.GroupOf(name), name)
	if k == nil {
		return ""
	}
	return k.about().link
}

// Named finds a kind by its name, plural or short name, in any case, with or
// without the API group.
func (t Table) Named(text string) (string, bool) {
	text, group, qualified := strings.Cut(strings.ToLower(text), ".")
	for _, k := range t {
		info := k.about()
		if qualified && group != info.group {
			continue
		}
		if text == strings.ToLower(manifest.BareKind(info.name)) || text == info.plural || text == info.short {
			return info.name, true
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
	kind, namespace, name = k.sourceRef(adm.Typed)
	return kind, cmp.Or(namespace, adm.Object.Namespace), name, kind != ""
}
