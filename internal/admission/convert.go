package admission

import (
	"fmt"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// stored returns the newest API version of a kind, the only one that has a schema.
func stored(obj *manifest.Object) string {
	switch obj.Kind {
	case flux1Kind:
		return flux1Version
	case olderFlux1Kind:
		return olderFlux1Version
	}
	for group, kinds := range servedBy {
		if spans := kinds[obj.Kind]; len(spans) > 0 {
			return group + "/" + spans[0].version
		}
	}
	return ""
}

func storedVersion(obj *manifest.Object) string {
	_, version, _ := strings.Cut(stored(obj), "/")
	return version
}

func version(obj *manifest.Object) string {
	_, version, _ := strings.Cut(obj.APIVersion, "/")
	return version
}

// servedVersion reports whether a release of the controllers served the version of an object. Old Kustomizations do not get here.
func servedVersion(obj *manifest.Object) bool {
	return obj.APIVersion == stored(obj) || NewestFlux.Serve(obj.APIVersion, obj.Kind).Known
}

// removed lists the fields that v1 no longer has, by kind.
var removed = map[string][]string{
	"HelmChart":     {"accessFrom", "valuesFile"},
	"GitRepository": {"accessFrom", "gitImplementation"},
	"Bucket":        {"accessFrom"},
}

// added lists the fields of spec that v1beta1 does not have, by kind: its API server refuses them.
var added = map[string][]string{
	"ImagePolicy":     {"digestReflectionPolicy", "interval", "suspend"},
	"ImageRepository": {"insecure", "provider", "proxySecretRef"},
}

// younger returns the fields that the version of an object does not have yet.
func (r *review) younger() []string {
	var paths []string
	for _, name := range added[r.obj.Kind] {
		if _, ok := r.spec()[name]; ok && version(r.obj) == "v1beta1" {
			paths = append(paths, "spec."+name)
		}
	}
	return paths
}

func (r *review) convert() {
	if r.obj.APIVersion == stored(r.obj) {
		return
	}
	r.content["apiVersion"] = stored(r.obj)
	r.warnAt(finding.DeprecatedVersion, "apiVersion", "%s %s is deprecated, upgrade to %s", version(r.obj), r.obj.Kind, storedVersion(r.obj))
	if r.obj.Kind == releaseKind {
		r.convertRelease()
		return
	}
	spec := r.spec()
	for _, name := range removed[r.obj.Kind] {
		v, ok := spec[name]
		if !ok {
			continue
		}
		delete(spec, name)
		if name == "valuesFile" {
			r.convertValuesFile(v, "spec")
		} else {
			r.warnAt(finding.RemovedField, "spec."+name, "spec.%s was removed in v1 and is ignored", name)
		}
	}
	// RFC-0002 spells the types with capitals.
	if t := spec["type"]; r.obj.Kind == "HelmRepository" && (t == "OCI" || t == "Default") {
		spec["type"] = strings.ToLower(t.(string))
		r.warnAt(finding.DeprecatedSpelling, "spec.type", "spec.type: %s is written %s in v1", t, spec["type"])
	}
}

// convertValuesFile converts the old field valuesFile at a path.
func (r *review) convertValuesFile(v any, at string) {
	switch v := v.(type) {
	case nil:
	case string:
		r.valuesFile = v
		r.warnAt(finding.RemovedField, at+".valuesFile", "%s.valuesFile was removed in %s: it is used as the first of %[1]s.valuesFiles", at, storedVersion(r.obj))
	default:
		name := jsonType(v)
		detail := fmt.Sprintf("%s.valuesFile in body must be of type string: %q", at, name)
		r.errs = append(r.errs, r.causes(field.ErrorList{field.TypeInvalid(field.NewPath(at).Child("valuesFile"), name, detail)})...)
	}
}

// finishConversion puts the old valuesFile before all other values files. It is added last, so that the indexes in errors are
// those of the file.
func (r *review) finishConversion() {
	if r.valuesFile == "" {
		return
	}
	spec := r.spec()
	if r.obj.Kind == releaseKind {
		spec = templateSpec(spec)
	}
	files, _ := spec["valuesFiles"].([]any)
	spec["valuesFiles"] = append([]any{r.valuesFile}, files...)
}

func jsonType(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case bool:
		return "boolean"
	case int64:
		return "integer"
	case float64:
		return "number"
	}
	return "string"
}

// Converts reports whether admission converts objects of old versions of a kind to the newest version, so that fields that are
// lost are known.
func Converts(kind string) bool {
	_, ok := schemas[kind]
	return ok && kind != kustomizev1.KustomizationKind
}
