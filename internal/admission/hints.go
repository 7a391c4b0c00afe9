package admission

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

const chartKind = "HelmChart"

const quoteHint = "put the value in quotes to make it a string"

// needsDestination replaces the regular expression of a field in messages.
const needsDestination = "must begin with @artifact/"

// plain replaces the pattern in an error with a sentence.
func (r *review) plain(path []any, e *field.Error) {
	if text, ok := manifest.ValueAt(r.obj.Content, path).(string); ok && r.obj.Kind == "ArtifactGenerator" && strings.HasSuffix(e.Field, ".to") && !strings.HasPrefix(text, "@artifact/") {
		e.Detail = needsDestination
	}
}

// hint returns a hint if an error comes from a known mistake.
func (r *review) hint(path []any, e *field.Error) string {
	value := manifest.ValueAt(r.obj.Content, path)
	text, isText := value.(string)
	if names := manifest.Variables(text); len(names) > 0 {
		return fmt.Sprintf(finding.GiveValue, names[0])
	}
	switch {
	case r.obj.Kind == releaseKind && r.releaseHint(value, e) != "":
		return r.releaseHint(value, e)
	case value == nil:
		return ""
	case manifest.IsFlux1(r.obj.Group()) && r.operatorHint(value, e) != "":
		return r.operatorHint(value, e)
	case e.Type == field.ErrorTypeTypeInvalid && isText && isLiteral(text, r.schema.at(path).Type):
		return "remove the quotes: with them it is a string"
	case r.obj.Kind == "FluxInstance" && e.Field == "metadata":
		return "set metadata.name to flux"
	case e.Detail == needsDestination:
		return "write @artifact/" + strings.TrimPrefix(strings.TrimLeft(text, "@/"), "artifact/")
	case e.Field == "spec.timeout" && strings.Contains(text, "h"):
		return "a timeout has no hours: write 60m for 1h"
	case isDuration(path):
		return durationHint(text, e.Field == "spec.timeout")
	case r.obj.Kind == "OCIRepository" && e.Field == "spec.url" && strings.HasPrefix(text, "http"):
		_, rest, _ := strings.Cut(text, "://")
		return "write oci://" + rest
	case e.Field == "spec.url" && isText && !strings.Contains(text, "://"):
		return "a URL begins with a scheme, as in https://"
	case e.Type == field.ErrorTypeTypeInvalid && isScalar(value) && r.obj.Kind != "FluxInstance" && r.obj.Origin != nil && r.obj.Origin.Kind == "FluxInstance":
		return "flux-operator writes the value without quotes: put quotes inside the quotes, as in '\"1.10\"'"
	case e.Type == field.ErrorTypeTypeInvalid && isScalar(value) && r.schema.at(path).Type == "string":
		if name := r.variableAt(path); name != "" {
			return fmt.Sprintf(`a build drops the quotes around ${%s}: put quotes inside its value, as in %s: '"1.10"'`, name, name)
		}
		return quoteHint
	case e.Type == field.ErrorTypeTypeInvalid && isText && r.schema.at(path).Properties["name"] != nil:
		return "write a map, as in {name: NAME}" // without the text, which may be a password
	case e.Type == field.ErrorTypeTypeInvalid && isText && r.schema.at(path).Type == "integer":
		return "write a whole number, without quotes"
	case e.Type == field.ErrorTypeTypeInvalid && isText && r.schema.at(path).Type == "boolean":
		return "write true or false, without quotes"
	case e.Type == field.ErrorTypeNotSupported && text != "":
		// A different first letter is a different word: a HelmRepository is not a misspelt GitRepository.
		if near, ok := finding.Nearest(text, r.schema.at(path).Enum); ok && strings.EqualFold(near[:1], text[:1]) {
			return "did you mean " + near + "?"
		}
	}
	return ""
}

// durationHint writes a duration in the syntax of Flux, which has no days, and no unit of more than two letters. A timeout has no
// hours either.
func durationHint(text string, timeout bool) string {
	rest := strings.TrimLeft(text, "0123456789")
	number, err := strconv.Atoi(strings.TrimSuffix(text, rest))
	unit := strings.ToLower(strings.TrimSpace(rest))
	switch {
	case err != nil || number > 1000 || unit == "":
	case (unit == "d" || strings.HasPrefix(unit, "day")) && timeout:
		return fmt.Sprintf("a timeout has no days: write %dm", 24*60*number)
	case unit == "d" || strings.HasPrefix(unit, "day"):
		return fmt.Sprintf("a duration has no days: write %dh", 24*number)
	case unit[0] == 'h' || unit[0] == 's' || unit == "m" || strings.HasPrefix(unit, "min"):
		return fmt.Sprintf("write %d%c", number, unit[0])
	}
	return "a duration has a unit, as in 90s or 10m"
}

// variableAt returns the variable in the value of a field, "" if the file has no variable there, or several.
func (r *review) variableAt(path []any) string {
	e := r.obj.Excerpt(path...)
	if names := manifest.Variables(e.Marked + e.After); len(names) == 1 {
		return names[0]
	}
	return ""
}

// isLiteral reports whether a text would be a boolean or an integer without its quotes.
func isLiteral(text, schemaType string) bool {
	switch schemaType {
	case "boolean":
		return text == "true" || text == "false"
	case "integer":
		_, err := strconv.ParseInt(text, 10, 64)
		return err == nil
	}
	return false
}

func isScalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// unknownHint returns the nearest name at the same place, or the place where the name is known.
func (r *review) unknownHint(path []any) string {
	parent := path[:len(path)-1]
	name, _ := path[len(path)-1].(string)
	if r.obj.Kind == chartKind && len(path) == 3 && path[1] == "sourceRef" && name == "namespace" {
		return "the source of a HelmChart is in the HelmChart's own namespace: leave the field out; a HelmRelease may name a source elsewhere in spec.chart.spec.sourceRef"
	}
	if len(parent) == 1 && parent[0] == "spec" && slices.Contains(removed[r.obj.Kind], name) {
		if name == "valuesFile" {
			return storedVersion(r.obj) + " has no spec.valuesFile: put the file first in spec.valuesFiles"
		}
		return storedVersion(r.obj) + " has no spec." + name + ": leave it out"
	}
	if r.obj.Kind == releaseKind && name == "valuesFile" {
		return "v2 has no spec.chart.spec.valuesFile: put the file first in spec.chart.spec.valuesFiles"
	}
	if r.obj.Kind == releaseKind && slices.Contains(chartOfFlux1, manifest.Dotted(path...)) {
		return "this is the spec.chart of Flux 1: since v2beta1, a HelmRelease names chart, version and sourceRef in spec.chart.spec; helmsrc migrate converts HelmReleases of Flux 1"
	}
	if len(parent) == 1 && slices.Contains(r.younger(), "spec."+name) {
		return storedVersion(r.obj) + " has it: change apiVersion, or leave it out"
	}
	known := metadataFields
	if len(parent) == 0 || parent[0] != "metadata" {
		known = r.schema.at(parent).names()
	}
	if near, ok := finding.Nearest(name, known); ok {
		return fmt.Sprintf("did you mean %s?", manifest.Dotted(append(slices.Clone(parent), near)...))
	}
	if inner := append(slices.Clone(parent), "spec"); slices.Contains(r.schema.at(inner).names(), name) && len(parent) > 0 {
		return fmt.Sprintf("did you mean %s?", manifest.Dotted(append(inner, name)...))
	}
	for _, parent := range [][]any{nil, {"spec"}} {
		if slices.Contains(r.schema.at(parent).names(), name) {
			return fmt.Sprintf("%s belongs in %s", name, cmp.Or(manifest.Dotted(parent...), "the object itself"))
		}
	}
	return ""
}

// chartOfFlux1 lists the fields that describe a chart in the HelmReleases of Flux 1.
var chartOfFlux1 = []string{"spec.chart.git", "spec.chart.name", "spec.chart.path", "spec.chart.ref", "spec.chart.repository", "spec.chart.version"}

var metadataFields = []string{"annotations", "finalizers", "generateName", "labels", "name", "namespace"}
