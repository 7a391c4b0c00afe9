// Package inventory says what takes part in a run: the objects of the input as an API server would have stored them, the
// HelmCharts that HelmReleases make, what depends on what, and what references mean. It asks no network.
package inventory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/generate"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/work"
)

// Inventory hands out the objects of the input as the API server would have
// stored them. Each object is judged once, on first use. It is
// safe for many goroutines. New makes it of a Set that no longer changes; it ends with
// the run.
type Inventory struct {
	set      *manifest.Set
	admitted work.Memo[*manifest.Object, *admission.Admitted]

	expansions  map[string][]Expansion
	deriveOnce  sync.Once
	derivations *derivations

	// sameNamespace refuses references of releases into other namespaces.
	sameNamespace bool
	refuse        func(*manifest.Object) error // nil refuses nothing
	part          func(*manifest.Object) bool  // nil is all

	placesOnce sync.Once
	places     map[namespacedURL]*admission.Admitted // HelmRepositories
}

// New returns the inventory of a set of manifests.
func New(set *manifest.Set) *Inventory {
	return &Inventory{set: set}
}

// Refuse has objects rejected for which a function returns an error. It comes before anything else.
func (inv *Inventory) Refuse(refuse func(*manifest.Object) error) { inv.refuse = refuse }

// Part says what a run is about, if not about all objects. Of releases beside it, and of their HelmCharts, only what they are is
// kept: they are judged again on use. It comes before anything else.
func (inv *Inventory) Part(has func(*manifest.Object) bool) { inv.part = has }

// spare forgets how an object was judged that is beside the part.
func (inv *Inventory) spare(obj *manifest.Object) {
	if inv.part != nil && !inv.part(obj) {
		inv.admitted.Forget(obj)
	}
}

// DenyCrossNamespace is --no-cross-namespace-refs. It comes before anything else.
func (inv *Inventory) DenyCrossNamespace() { inv.sameNamespace = true }

// Access refuses what --no-cross-namespace-refs forbids. The field says which namespace.
func (inv *Inventory) Access(from, kind, namespace, name string, field ...any) error {
	if !inv.sameNamespace || namespace == from {
		return nil
	}
	return &finding.Problem{
		Code: finding.ForbiddenReference, Field: field,
		Text: fmt.Sprintf("cross-namespace references are not allowed: cannot access %s %s/%s", kind, namespace, name),
	}
}

// Admit judges an object. The error is an *admission.InvalidError.
func (inv *Inventory) Admit(obj *manifest.Object) (*admission.Admitted, error) {
	return inv.admitted.Do(context.Background(), obj, func() (*admission.Admitted, error) {
		if inv.refuse != nil {
			if err := inv.refuse(obj); err != nil {
				return nil, err
			}
		}
		adm, err := admission.Admit(obj)
		if err == nil {
			setNamespace(adm)
		}
		return adm, err
	})
}

// AdmitAll judges objects at the same time. What Admit says of each afterwards
// costs nothing: the schema of a kind takes longer to read than an object to judge,
// and there are several kinds.
func (inv *Inventory) AdmitAll(objects []*manifest.Object) {
	work.Ordered(len(objects), runtime.GOMAXPROCS(0), func(i int) {
		_, _ = inv.Admit(objects[i]) // remembered, failures too
	})
}

// setNamespace fills in the namespace of an object that names none, as a
// client does before it sends the object.
func setNamespace(adm *admission.Admitted) {
	if typed, ok := adm.Typed.(metav1.Object); ok {
		typed.SetNamespace(adm.Object.Namespace)
	}
	metadata, ok := adm.Content["metadata"].(map[string]any)
	if !ok || metadata["namespace"] == adm.Object.Namespace {
		return
	}
	placed := maps.Clone(adm.Content)
	metadata = maps.Clone(metadata)
	metadata["namespace"] = adm.Object.Namespace
	placed["metadata"] = metadata
	adm.Content = placed
}

// Find returns the admitted source object of this kind, namespace and name, in
// the input or in a file beside it. The error is a *manifest.NotFoundError, a
// *manifest.DuplicateError or a *RejectedError.
func (inv *Inventory) Find(kind, namespace, name string) (*admission.Admitted, error) {
	obj := inv.Derivations().byKey[store.NewKey(kind, namespace, name)]
	if obj == nil {
		var err error
		if obj, err = inv.set.Lookup(GroupOf(kind), kind, namespace, name); err != nil {
			return nil, err
		}
	}
	adm, err := inv.Admit(obj)
	if err != nil {
		return nil, &RejectedError{Object: obj, Err: err}
	}
	return adm, nil
}

// FindFor is Find for a reference of an object, with the field that could name another namespace.
func (inv *Inventory) FindFor(obj *manifest.Object, kind, namespace, name string) (*admission.Admitted, error) {
	adm, err := inv.Find(kind, namespace, name)
	if missing, ok := errors.AsType[*manifest.NotFoundError](err); ok && !inv.sameNamespace {
		switch {
		case obj.Origin != nil:
			missing.Field = "spec.chart.spec.sourceRef.namespace"
		case obj.Kind == helmv2.HelmReleaseKind:
			missing.Field = "spec.chartRef.namespace"
		}
	}
	return adm, err
}

// Set returns the manifests, which references to Secrets, ConfigMaps and ServiceAccounts are looked up in.
func (inv *Inventory) Set() *manifest.Set { return inv.set }

// RejectedError says that an object is in the input, but the API server would
// not have stored it. To a controller it does not exist.
type RejectedError struct {
	Object *manifest.Object
	Err    error
}

func (e *RejectedError) Error() string {
	return fmt.Sprintf("%s %s/%s was rejected", e.Object.Kind, e.Object.Namespace, e.Object.Name)
}

// Finding is what is wrong.
func (*RejectedError) Finding() finding.Code { return finding.UnusableSource }

func (e *RejectedError) Unwrap() error { return e.Err }

// Hint points at the place of the rejected object.
func (e *RejectedError) Hint() string {
	return fmt.Sprintf("fix %s %s/%s at %s first", e.Object.Kind, e.Object.Namespace, e.Object.Name, e.Object.Pos)
}

// GroupOf is the API group of a kind that a reference names without one: no two of
// the kinds that are reconciled have the same name.
func GroupOf(kind string) string {
	switch kind {
	case helmv2.HelmReleaseKind:
		return manifest.ReleaseGroup
	case generate.Kind:
		return manifest.ExtensionsGroup
	}
	if kind == "ImagePolicy" || kind == "ImageRepository" {
		return manifest.ImageGroup
	}
	return manifest.SourceGroup
}
