// Package admission decides whether the API server would accept an object: it converts, defaults and validates it with schemas
// generated from the controllers' own types. It does not check references between objects or the status.
package admission

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

//go:generate go -C ../../tools run ./crds ../internal/admission/crds

// Admitted is an object as a controller would see it, without the status. Admit makes it, once per object and run.
// It is shared: clone Typed before changing it.
type Admitted struct {
	Object  *manifest.Object
	Content map[string]any // of the stored version, with defaults and namespace; parts are the Object's
	Typed   any            // *HelmRepository, *HelmChart, *GitRepository, *Bucket, *OCIRepository or *ExternalArtifact of source-controller's api/v1, *ImagePolicy or *ImageRepository of image-reflector-controller's api/v1, *HelmRelease of helm-controller's api/v2, *Kustomization of kustomize-controller's api/v1, *ArtifactGenerator of source-watcher's api/v1beta1, *operator.HelmRelease of either group of Flux 1

	// Warnings are causes that are allowed but probably mistakes, in the order of the file.
	Warnings []Cause
}

// Admit checks one object. It returns an *InvalidError if the API server would refuse the object.
func Admit(obj *manifest.Object) (*Admitted, error) {
	k, ok := schemas[obj.Kind]
	if !ok {
		return nil, fmt.Errorf("schema of %s: no such kind", obj.Kind)
	}
	s, err := k.schema()
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", obj.Kind, err)
	}
	return s.admit(obj)
}

func (s *schema) admit(obj *manifest.Object) (*Admitted, error) {
	r := &review{obj: obj, schema: s}
	if !servedVersion(obj) {
		return nil, r.noMatch()
	}
	r.copy()
	r.convert()
	if err := r.decode(); err != nil {
		return nil, err
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	r.finishConversion()
	typed, err := r.typed()
	if err != nil {
		return nil, err
	}
	r.warn(typed)
	content, _ := manifest.Shared(r.content, obj.Content)
	return &Admitted{Object: obj, Content: content.(map[string]any), Typed: typed, Warnings: r.warnings()}, nil
}

// review is the state of one object in admission.
type review struct {
	obj     *manifest.Object
	schema  *schema
	content map[string]any

	valuesFile string // of the old versions
	errs       []Cause
	broken     field.ErrorList // errors of the rules
	found      []Cause
}

// copy copies the content of the object, adds its namespace, and removes the status: an apply could not set it.
func (r *review) copy() {
	r.content = maps.Clone(r.obj.Content)
	delete(r.content, "status")
	r.content = runtime.DeepCopyJSON(r.content)
	metadata, ok := r.content["metadata"].(map[string]any)
	if r.content["metadata"] == nil {
		metadata, ok = map[string]any{}, true
		r.content["metadata"] = metadata
	}
	if ok && (metadata["namespace"] == nil || metadata["namespace"] == "") {
		metadata["namespace"] = r.obj.Namespace
	}
}

func (r *review) spec() map[string]any {
	spec, _ := r.content["spec"].(map[string]any)
	return spec
}
