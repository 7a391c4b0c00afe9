package reconcile

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
)

// kind is everything that the rest of the package knows about one kind of
// object. A further kind is one file more, and one line in kinds.
type kind struct {
	group  string
	name   string
	plural string
	short  string
	source bool   // other objects refer to it
	link   string // name of the link to the newest artifact, "" for none

	// empty returns a new typed object, clone a deep copy of one.
	empty func() any
	clone func(typed any) any
	// fields gives access to the typed object's status.
	fields func(typed any) fields
	// suspended is spec.suspend.
	suspended func(typed any) bool
	// reconcile takes the object from spec to outcome. It fills the reconciliation; an error
	// becomes the outcome's failure.
	reconcile func(ctx context.Context, p *reconciliation) error
	// static reports that an object has no status by design; nil means never.
	static func(typed any) bool
	// sourceRef names the source of an object, if its kind has one. An empty namespace
	// is the object's own, an empty kind no source at all.
	sourceRef func(typed any) (kind, namespace, name string)
	// fold and events make conditions and events of an outcome where source-controller's
	// way is not the kind's.
	fold   func(status.Previous, status.Outcome, time.Time) ([]metav1.Condition, int64)
	events func(status.Previous, status.Outcome) []status.Event
	// listed kinds have versions to list, of themselves or of others.
	listed bool
	// noArtifact reports that an object is well as long as it waits for a cluster. It has no
	// artifact.
	noArtifact bool
}

// fields is the part of a status that all kinds share. All points to the whole.
type fields struct {
	all                any
	observedGeneration *int64
	conditions         *[]metav1.Condition
	artifact           **meta.Artifact
	url                *string // nil for kinds that have none
	handled            *string // lastHandledReconcileAt
}

// kinds lists the kinds that helmsrc reconciles, sources first.
func kinds() []kind {
	kindTable.once.Do(func() {
		kindTable.list = []kind{helmRepositoryKind(), gitRepositoryKind(), bucketKind(), ociRepositoryKind(), helmChartKind(), helmReleaseKind()}
	})
	return kindTable.list
}

// kindTable is made once. It cannot be made where it is declared: what the kinds do
// needs the table.
var kindTable struct {
	once sync.Once
	list []kind
}

// kindOf finds a kind by its API group and name: a name alone says nothing, k3s has
// a HelmChart too.
func kindOf(group, name string) (kind, bool) {
	for _, k := range kinds() {
		if k.group == group && k.name == name {
			return k, true
		}
	}
	return kind{}, false
}

func kindOfObject(obj *manifest.Object) (kind, bool) { return kindOf(obj.Group(), obj.Kind) }

// Kinds are the names of the kinds that are reconciled.
func Kinds() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return names
}

// KindsWithoutArtifact are the names of those whose objects store nothing.
func KindsWithoutArtifact() []string {
	var names []string
	for _, k := range kinds() {
		if k.noArtifact {
			names = append(names, k.name)
		}
	}
	return names
}

// Supports reports whether the object is of a kind that is reconciled.
func Supports(obj *manifest.Object) bool {
	_, ok := kindOfObject(obj)
	return ok
}

// IsSource reports whether objects of this kind hold what charts are made of.
func IsSource(name string) bool {
	k, ok := kindOf(inventory.GroupOf(name), name)
	return ok && k.source
}

// KindNamed finds a kind by its name, plural or short name, in any case, with or
// without the API group.
func KindNamed(text string) (string, bool) {
	text, group, qualified := strings.Cut(strings.ToLower(text), ".")
	for _, k := range kinds() {
		if qualified && group != k.group {
			continue
		}
		if text == strings.ToLower(k.name) || text == k.plural || text == k.short {
			return k.name, true
		}
	}
	return "", false
}

// SourceRef names the source that an object refers to.
func SourceRef(adm *admission.Admitted) (kind, namespace, name string, ok bool) {
	k, known := kindOfObject(adm.Object)
	if !known || k.sourceRef == nil {
		return "", "", "", false
	}
	kind, namespace, name = k.sourceRef(adm.Typed)
	return kind, cmp.Or(namespace, adm.Object.Namespace), name, kind != ""
}
