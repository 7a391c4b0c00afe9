// Package inventory determines the objects of a run: the objects of the input as an API server would have stored them,
// the HelmCharts of HelmReleases, the dependencies, and the targets of references. It makes no requests.
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

// Inventory provides the objects of the input as the API server would have stored
// them. It validates each object once, on first use. It may be used by several
// goroutines at once. New creates it from a Set that must not change afterwards; it
// ends with the run.
type Inventory struct {
	set      *manifest.Set
	admitted work.Memo[*manifest.Object, *admission.Admitted]

	deriveOnce  sync.Once
	derivations *derivations

	placesOnce sync.Once
	places     map[namespacedURL]*admission.Admitted // HelmRepositories

	// The rest may be set before the first call of a method.

	// Expansions are the artifacts of generators with a pathPattern, by namespace and name of the generator.
	Expansions map[string][]Expansion
	// SameNamespace forbids references of releases to other namespaces.
	SameNamespace bool
	// Refuse rejects objects by returning an error; nil rejects nothing.
	Refuse func(*manifest.Object) error
	// Part restricts a run to the objects for which it returns true; nil selects all objects. To save memory, the validated form of
	// other releases and their HelmCharts is not kept: they are validated again on use.
	Part func(*manifest.Object) bool
}

// New returns the inventory of a set of manifests.
func New(set *manifest.Set) *Inventory {
	return &Inventory{set: set}
}

// forget discards the validated form of an object outside of the part.
func (inv *Inventory) forget(obj *manifest.Object) {
	if inv.Part != nil && !inv.Part(obj) {
		inv.admitted.Forget(obj)
	}
}

// Access returns an error for a reference that --no-cross-namespace-refs forbids. The field is that of the namespace.
func (inv *Inventory) Access(from, kind, namespace, name string, field ...any) error {
	if !inv.SameNamespace || namespace == from {
		return nil
	}
	return &finding.Problem{
		Code: finding.ForbiddenReference, Field: field,
		Text: fmt.Sprintf("cross-namespace references are not allowed: cannot access %s %s/%s", kind, namespace, name),
	}
}

// Admit validates an object. The error is an *admission.InvalidError.
func (inv *Inventory) Admit(obj *manifest.Object) (*admission.Admitted, error) {
	return inv.admitted.Do(context.Background(), obj, func() (*admission.Admitted, error) {
		if inv.Refuse != nil {
			if err := inv.Refuse(obj); err != nil {
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

// AdmitAll validates objects in parallel, so that later calls of Admit return at
// once. Reading the schema of a kind takes longer than validating an object, and
// there are several kinds.
func (inv *Inventory) AdmitAll(objects []*manifest.Object) {
	work.Ordered(len(objects), runtime.GOMAXPROCS(0), func(i int) {
		_, _ = inv.Admit(objects[i]) // results and errors are kept
	})
}

// setNamespace sets the namespace of an object that does not name one, as a
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

// Find returns the admitted object with this kind, namespace and name, from the
// input or from a file beside it. The error is a *manifest.NotFoundError, a
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

// FindFor is Find for a reference of an object. A *manifest.NotFoundError names the field that could name another namespace.
func (inv *Inventory) FindFor(obj *manifest.Object, kind, namespace, name string) (*admission.Admitted, error) {
	adm, err := inv.Find(kind, namespace, name)
	if missing, ok := errors.AsType[*manifest.NotFoundError](err); ok && !inv.SameNamespace {
		switch {
		case obj.Origin != nil:
			missing.Field = "spec.chart.spec.sourceRef.namespace"
		case obj.Kind == helmv2.HelmReleaseKind:
			missing.Field = "spec.chartRef.namespace"
		}
	}
	return adm, err
}

// Set returns the manifests, for references to Secrets, ConfigMaps and ServiceAccounts.
func (inv *Inventory) Set() *manifest.Set { return inv.set }

// RejectedError reports an object of the input that the API server would not
// have stored. For a controller it does not exist.
type RejectedError struct {
	Object *manifest.Object
	Err    error
}

func (e *RejectedError) Error() string {
	return fmt.Sprintf("%s %s/%s was rejected", e.Object.Kind, e.Object.Namespace, e.Object.Name)
}

// Finding returns the code of the error.
func (*RejectedError) Finding() finding.Code { return finding.UnusableSource }

func (e *RejectedError) Unwrap() error { return e.Err }

// Hint returns advice with the position of the rejected object.
func (e *RejectedError) Hint() string {
	return fmt.Sprintf("fix %s %s/%s at %s first", e.Object.Kind, e.Object.Namespace, e.Object.Name, e.Object.Pos)
}

// GroupOf returns the API group of a kind in a reference without a group: the
// reconciled kinds have distinct names.
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
