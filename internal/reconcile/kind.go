package reconcile

import (
	"cmp"
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

// kind describes one kind of object to the rest of the package: see Kinds. Kinds have no state: one value serves all
// objects of all runs.
type kind struct {
	group, name, plural, short string

	source bool   // other objects refer to it
	link   string // name of the link to the newest artifact, "" for none
	// listed is true if an object has versions to list, either its own or those of its charts.
	listed bool
	// noArtifact is true if the kind stores nothing: such objects wait for a cluster.
	noArtifact bool
	// settled is true for a noArtifact kind whose objects wait for nothing: they are ready.
	settled bool

	empty func() any          // a new typed object
	clone func(typed any) any // a deep copy
	parts func(typed any) parts
	begin func(p *reconciliation) objectSteps

	// folds computes conditions from an outcome, nil for a source's conditions; makes computes events.
	folds func(status.Previous, status.Outcome, time.Time) ([]metav1.Condition, int64)
	makes func(status.Outcome) []status.Event
}

// parts points to the fields that all kinds have in their own types.
type parts struct {
	status                                  any // the whole
	generation                              *int64
	conditions                              *[]metav1.Condition
	artifact                                **meta.Artifact
	url, handled                            *string
	saved                                   func() // called after the other fields have changed
	suspended                               bool   // spec.suspend
	static                                  bool   // no status by design
	sourceKind, sourceNamespace, sourceName string // "" for the object's own namespace, or without a source
}

// kindOf completes a kind with functions for its Go type.
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

// valueOf and set ignore fields that a kind does not have.
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

// fold and midway compute conditions from an outcome: fold for the end of the run, midway for the time before anything is stored.
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

// Table lists kinds, sources first.
type Table []*kind

// find returns a kind by its API group and name. A name alone is ambiguous: k3s
// has a HelmChart too.
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

// Names returns the names of the kinds.
func (t Table) Names() []string {
	var names []string
	for _, k := range t {
		names = append(names, k.name)
	}
	return names
}

// WithoutArtifact returns the names of the kinds whose objects store nothing.
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

// Link returns the name of the link to the newest artifact of a kind, "" if the kind has no link.
func (t Table) Link(name string) string {
	k, _ := t.find(inventory.GroupOf(name), name)
	if k == nil {
		return ""
	}
	return k.link
}

// Named returns the kind with a name, plural or short name, in any case, with
// or without the API group.
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

// SourceRef returns the kind, namespace and name of the source that an object refers to.
func (t Table) SourceRef(adm *admission.Admitted) (kind, namespace, name string, ok bool) {
	k, known := t.of(adm.Object)
	if !known {
		return "", "", "", false
	}
	p := k.parts(adm.Typed)
	return p.sourceKind, cmp.Or(p.sourceNamespace, adm.Object.Namespace), p.sourceName, p.sourceKind != ""
}
