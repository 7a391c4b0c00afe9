package admission

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// v1 is the one version that schemas exist for.
const v1 = manifest.SourceGroup + "/v1"

func version(obj *manifest.Object) string {
	_, version, _ := strings.Cut(obj.APIVersion, "/")
	return version
}

// servedVersion is true of the versions that some release of source-controller served. OCIRepositories are younger than
// v1beta1.
func servedVersion(obj *manifest.Object) bool {
	switch obj.APIVersion {
	case v1, manifest.SourceGroup + "/v1beta2":
		return true
	case manifest.SourceGroup + "/v1beta1":
		return obj.Kind != "OCIRepository"
	}
	return false
}

// removed are the fields that v1 no longer has, by kind.
var removed = map[string][]string{
	"HelmChart":     {"accessFrom", "valuesFile"},
	"GitRepository": {"accessFrom", "gitImplementation"},
	"Bucket":        {"accessFrom"},
}

// convert makes an object of an old version one of v1.
func (r *review) convert() {
	if r.obj.APIVersion == v1 {
		return
	}
	r.content["apiVersion"] = v1
	r.warnAt(finding.DeprecatedVersion, "apiVersion", "%s %s is deprecated, upgrade to v1", version(r.obj), r.obj.Kind)
	spec := r.spec()
	for _, name := range removed[r.obj.Kind] {
		v, ok := spec[name]
		if !ok {
			continue
		}
		delete(spec, name)
		if name == "valuesFile" {
			r.convertValuesFile(v)
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

func (r *review) convertValuesFile(v any) {
	switch v := v.(type) {
	case nil:
	case string:
		r.valuesFile = v
		r.warnAt(finding.RemovedField, "spec.valuesFile", "spec.valuesFile was removed in v1: it goes in front of spec.valuesFiles")
	default:
		name := jsonType(v)
		detail := fmt.Sprintf("spec.valuesFile in body must be of type string: %q", name)
		r.errs = append(r.errs, r.causes(field.ErrorList{field.TypeInvalid(field.NewPath("spec", "valuesFile"), name, detail)})...)
	}
}

// finishConversion puts the old valuesFile where it has the least weight. It is kept apart until then, so that errors
// name the indexes of the file.
func (r *review) finishConversion() {
	if r.valuesFile == "" {
		return
	}
	files, _ := r.spec()["valuesFiles"].([]any)
	r.spec()["valuesFiles"] = append([]any{r.valuesFile}, files...)
}

func jsonType(v any) string {
	switch v.(type) {
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
