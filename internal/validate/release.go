package validate

import (
	"errors"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/cel"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/operator"
	"github.com/helmsrc/helmsrc/internal/values"
)

// helmRelease checks the references of a release. Its HelmChart is checked separately.
func (v *validation) helmRelease(hr *helmv2.HelmRelease) {
	for _, w := range v.inv.DependencyFaults(v.adm.Object, hr) {
		v.findings = append(v.findings, At(v.adm.Object, w.Code, w.Message, nil, "spec", "dependsOn", w.Index, "name"))
	}
	for _, f := range cel.Faults(v.adm.Object.Content) {
		v.fail(finding.InvalidValue, f.Err, f.Path...)
	}
	if hr.Spec.Chart != nil {
		if d := v.inv.Derivations().Of[v.adm.Object]; d != nil && d.Err != nil {
			v.fail(finding.RefusedChart, d.Err, ReleaseField(d.Err)...)
		}
		v.emptyRange("spec", "chart", "spec", "version")
	} else {
		v.chartRef(hr)
	}
	v.releaseNames()
	v.releaseValues(hr)
}

// releaseNames checks the names that a release passes to Helm. The schema checks their length.
func (v *validation) releaseNames() {
	for _, field := range []string{"releaseName", "targetNamespace", "storageNamespace"} {
		name := manifest.At[string](v.adm.Object.Content, "spec", field)
		if name == "" || len(manifest.Variables(name)) > 0 {
			continue
		}
		why := apivalidation.IsDNS1123Label(name)
		if field == "releaseName" {
			why = apivalidation.IsDNS1123Subdomain(name)
		}
		if len(why) > 0 {
			v.warn(finding.RefusedName, fmt.Sprintf("spec.%s: %q is refused when the release is installed: %s", field, name, why[0]), "spec", field)
		}
	}
}

func (v *validation) chartRef(hr *helmv2.HelmRelease) {
	source, err := v.inv.ReleaseSource(v.adm.Object, hr)
	if err != nil {
		v.fail(finding.MissingSource, err, ReleaseField(err)...)
		return
	}
	if !hr.Spec.Suspend {
		v.suspendedSource(source, "spec", "chartRef", "name")
	}
}

// releaseValues composes the values, which reveals all errors in
// them.
func (v *validation) releaseValues(hr *helmv2.HelmRelease) (map[string]any, *values.Origins) {
	inline, err := inventory.InlineValues(hr)
	if err != nil {
		v.fail(finding.InvalidValues, err, "spec", "values")
		return nil, nil
	}
	refs := v.inv.AvailableValues(hr, func(i int, err error) { v.fail(finding.MissingSecret, err, "spec", "valuesFrom", i, "name") })
	composed, origins, err := values.Trace(hr.Namespace, refs, inline, v.inv.Values(hr.Namespace), func(error) {})
	v.fail(finding.InvalidValues, err, ReleaseField(err)...)
	v.markConfigMap(hr.Namespace, err)
	return composed, origins
}

// markConfigMap moves a finding about invalid values to the key of the ConfigMap that contains them.
func (v *validation) markConfigMap(namespace string, err error) {
	broken, ok := errors.AsType[*values.Error](err)
	if !ok || broken.Missing() || broken.Reference.Kind != "ConfigMap" || broken.Reference.TargetPath != "" || len(v.findings) == 0 {
		return
	}
	if e, ok := v.inv.ConfigMapKey(namespace, broken.Reference.Name, broken.Reference.GetValuesKey()); ok {
		f := &v.findings[len(v.findings)-1]
		f.Related, f.Pos = append(f.Related, f.Pos), e.Pos
		f.Line, f.Length = quote(e)
	}
}

// Values composes the values of a HelmRelease as helm-controller does before it passes them to Helm, and records the origin of
// each. If a finding is an error, there are no values. References to Secrets that are missing in the input become
// findings, and are left out, like values that [Unread] reports.
func Values(inv *inventory.Inventory, adm *admission.Admitted) (map[string]any, *values.Origins, []finding.Finding) {
	v := newValidation(inv, adm)
	if hr, ok := adm.Typed.(*operator.HelmRelease); ok {
		composed, origins := v.operatedValues(hr)
		return composed, origins, v.findings
	}
	composed, origins := v.releaseValues(adm.Typed.(*helmv2.HelmRelease))
	return composed, origins, v.findings
}

// ReleaseField returns the field of a HelmRelease that an error is about, nil if
// the error has no field.
func ReleaseField(err error) []any {
	var value *values.Error
	switch {
	case errors.As(err, &value):
		return []any{"spec", "valuesFrom", value.Index, "name"}
	case is[*inventory.UnavailableError](err):
		return []any{"spec", "chartRef", "name"}
	}
	return finding.PathOf(err)
}
