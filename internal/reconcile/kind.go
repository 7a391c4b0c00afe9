package reconcile

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
)

// kind is everything that the rest of the package knows about one kind of
// object. A further kind is one file more, and one line in kinds.
type kind struct {
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
	// reconcile takes the object from spec to outcome. It fills the pass; an error
	// becomes the outcome's failure.
	reconcile func(ctx context.Context, p *pass) error
	// static tells that an object has no status by design; nil means never.
	static func(typed any) bool
	// sourceRef names the source of an object, if its kind has one.
	sourceRef func(typed any) (kind, name string)
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
	return []kind{helmRepositoryKind(), gitRepositoryKind(), bucketKind(), helmChartKind()}
}

func kindOf(name string) (kind, bool) {
	for _, k := range kinds() {
		if k.name == name {
			return k, true
		}
	}
	return kind{}, false
}

// Kinds are the names of the kinds that are reconciled.
func Kinds() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return names
}

// Supports tells whether objects of this kind are reconciled.
func Supports(name string) bool {
	_, ok := kindOf(name)
	return ok
}

// IsSource tells whether objects of this kind hold what charts are made of.
func IsSource(name string) bool {
	k, ok := kindOf(name)
	return ok && k.source
}

// KindNamed finds a kind by its name, plural or short name, in any case, with or
// without the API group.
func KindNamed(text string) (string, bool) {
	text = strings.TrimSuffix(strings.ToLower(text), "."+sourcev1.GroupVersion.Group)
	for _, k := range kinds() {
		if text == strings.ToLower(k.name) || text == k.plural || text == k.short {
			return k.name, true
		}
	}
	return "", false
}

// SourceRef names the source that an object refers to, in its own namespace.
func SourceRef(adm *admission.Admitted) (kind, namespace, name string, ok bool) {
	k, known := kindOf(adm.Object.Kind)
	if !known || k.sourceRef == nil {
		return "", "", "", false
	}
	kind, name = k.sourceRef(adm.Typed)
	return kind, adm.Object.Namespace, name, true
}
