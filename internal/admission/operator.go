package admission

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/operator"
)

// The kinds and versions of HelmReleases of Flux 1, see [manifest.Called].
const (
	flux1Kind      = operator.Kind + "." + operator.Group
	olderFlux1Kind = operator.Kind + "." + operator.OlderGroup

	flux1Version      = operator.Group + "/v1"
	olderFlux1Version = operator.OlderGroup + "/v1beta1"
)

// alternatives checks the oneOf rules of the older CustomResourceDefinition, which schemas here do not support: a chart comes
// either from Git or from a repository, and each entry of valuesFrom has one source.
func (r *review) alternatives() field.ErrorList {
	if r.obj.Kind != olderFlux1Kind {
		return nil
	}
	var errs field.ErrorList
	if chart, ok := r.spec()["chart"].(map[string]any); ok {
		git, repository := hasAll(chart, "git", "path"), hasAll(chart, "repository", "name", "version")
		errs = append(errs, oneOf(field.NewPath("spec", "chart"), git, repository)...)
	}
	sources, _ := r.spec()["valuesFrom"].([]any)
	for i, source := range sources {
		entry, ok := source.(map[string]any)
		if !ok {
			continue
		}
		var there []bool
		for _, name := range []string{"configMapKeyRef", "secretKeyRef", "externalSourceRef", "chartFileRef"} {
			there = append(there, hasAll(entry, name))
		}
		errs = append(errs, oneOf(field.NewPath("spec", "valuesFrom").Index(i), there...)...)
	}
	return errs
}

func oneOf(path *field.Path, holds ...bool) field.ErrorList {
	count := 0
	for _, h := range holds {
		if h {
			count++
		}
	}
	if count == 1 {
		return nil
	}
	found := fmt.Sprintf("Found %d valid alternatives", count)
	if count == 0 {
		found = "Found none valid"
	}
	return field.ErrorList{field.Invalid(path, "", fmt.Sprintf("%q must validate one and only one schema (oneOf). %s", path, found))}
}

func hasAll(fields map[string]any, names ...string) bool {
	for _, name := range names {
		if _, ok := fields[name]; !ok {
			return false
		}
	}
	return true
}

// operatorHint returns a hint for a mistake that is specific to HelmReleases of Flux 1, or "".
func (r *review) operatorHint(value any, e *field.Error) string {
	_, text := value.(string)
	switch {
	case strings.HasSuffix(e.Field, "timeout") && text:
		return "the operator counts seconds: write 300 for 5m"
	case e.Field == "spec.chart" && r.obj.Kind == olderFlux1Kind:
		return "write either git and path, or repository, name and version"
	}
	return ""
}

func (r *review) warnOperator(hr *operator.HelmRelease) {
	chart := &hr.Spec.Chart
	source := chart.Source()
	warn := func(field, format string, args ...any) {
		r.warnAt(finding.OperatorSetting, "spec."+field, "spec."+field+" "+format, args...)
	}
	if hr.Spec.HelmVersion == "v2" {
		warn("helmVersion", "v2: Tiller is not needed, the chart and its values are the same for Helm 3")
	}
	if source == operator.GitSource {
		r.warnGitChart(chart, warn)
	}
	if source == operator.RepositorySource && chart.ChartPullSecret != nil {
		warn("chart.chartPullSecret", "is not read by the operator: the repository is requested without a login")
	}
	if _, err := semver.StrictNewVersion(chart.Version); source == operator.RepositorySource && err != nil {
		warn("chart.version", "%s is a range to the operator: it is resolved on every sync", chart.Version)
	}
	for i, from := range hr.Spec.ValuesFrom {
		if from.ExternalSourceRef != nil && from.ConfigMapKeyRef == nil && from.SecretKeyRef == nil {
			warn(fmt.Sprintf("valuesFrom[%d].externalSourceRef", i), "has no counterpart in Flux 2: the content of the URL can change unnoticed")
		}
	}
	if hr.Spec.ResetValues != nil && !*hr.Spec.ResetValues {
		warn("resetValues", "false: Helm adds the values of the previous release, which are not in a manifest")
	}
}

func (r *review) warnGitChart(chart *operator.Chart, warn func(field, format string, args ...any)) {
	if chart.Repository != "" && chart.Name != "" && chart.Version != "" {
		warn("chart.repository", "has no effect beside spec.chart.git and spec.chart.path")
	}
	if strings.HasPrefix(chart.Path, "/") {
		warn("chart.path", "begins with /: the operator does not notice when the chart changes")
	}
	if chart.SecretRef == nil {
		return
	}
	if !strings.HasPrefix(strings.ToLower(chart.Git), "https://") {
		warn("chart.secretRef", "is only read for https URLs")
		return
	}
	if chart.SecretRef.Namespace != "" && chart.SecretRef.Namespace != r.obj.Namespace {
		warn("chart.secretRef", "names a Secret of another namespace, which Flux 2 does not support")
	}
	if strings.ToLower(chart.Git) != chart.Git {
		warn("chart.git", "has capitals: with a secretRef, the operator requests the URL in lower case; helmsrc does not")
	}
}
