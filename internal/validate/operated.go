package validate

import (
	"errors"
	"slices"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/operator"
	"github.com/helmsrc/helmsrc/internal/values"
)

// operated checks a HelmRelease of Flux 1. The objects that it makes are checked separately.
func (v *validation) operated(hr *operator.HelmRelease) {
	if hr.Ignored() {
		return
	}
	_, err := v.inv.OperatedChart(v.adm.Object)
	at := []any{"spec", "chart"}
	if path := finding.PathOf(err); path != nil {
		at = path
	}
	v.fail(finding.RefusedChart, placed(err), at...)
	v.releaseNames()
	v.operatedValues(hr)
	v.clashes(hr)
}

// placed removes the position from an error of the API server.
func placed(err error) error {
	var invalid *admission.InvalidError
	if errors.As(err, &invalid) {
		return inventory.Unapplied(invalid)
	}
	return err
}

// operatedValues composes the values that are in the input.
func (v *validation) operatedValues(hr *operator.HelmRelease) (map[string]any, *values.Origins) {
	inline, err := inventory.OperatedInline(hr)
	if err != nil {
		v.fail(finding.InvalidValues, err, "spec", "values")
		return nil, nil
	}
	nothing := func(string) ([]byte, error) { return nil, nil }
	file := nothing
	if hr.Spec.Chart.Source() == operator.RepositorySource {
		file = func(name string) ([]byte, error) {
			return nil, &finding.Problem{
				Text:   "unable to read value file from path " + name,
				Advice: "chartFileRef reads from the directory of a chart in a Git repository: put the values into a ConfigMap",
			}
		}
	}
	parts, err := v.inv.OperatedParts(hr, inventory.OperatedReaders{URL: nothing, ChartFile: file})
	if err != nil {
		v.fail(finding.InvalidValues, err, finding.PathOf(err)...)
		return nil, nil
	}
	for i := range parts {
		v.missingPart(&parts[i])
	}
	composed, origins, err := values.MergeParts(parts, inline, func(error) {})
	var broken *values.PartError
	if errors.As(err, &broken) {
		v.fail(finding.InvalidValues, err, broken.Part.Path...)
	}
	return composed, origins
}

// Unread reports whether values of a HelmRelease of Flux 1 are not in manifests: in the directory of a chart in Git, or at a URL.
func Unread(hr *operator.HelmRelease) bool {
	return slices.ContainsFunc(hr.Spec.ValuesFrom, func(from operator.ValuesFromSource) bool {
		switch {
		case from.ConfigMapKeyRef != nil, from.SecretKeyRef != nil:
			return false
		}
		return from.ExternalSourceRef != nil || from.ChartFileRef != nil && hr.Spec.Chart.Source() == operator.GitSource
	})
}

// missingPart reports a Secret that is missing in the input, and makes it optional, so that the other values are composed.
func (v *validation) missingPart(p *values.Part) {
	if p.Kind != "Secret" || p.Optional {
		return
	}
	var missing *manifest.NotFoundError
	if _, err := p.Read(); errors.As(err, &missing) {
		v.fail(finding.MissingSecret, err, p.Path...)
		p.Optional = true
	}
}

// clashes reports other HelmReleases of the same Helm release.
func (v *validation) clashes(hr *operator.HelmRelease) {
	own, others := v.inv.SameRelease(v.adm.Object, hr)
	if len(own) > 0 {
		v.fail(finding.ChartClash, errors.New(inventory.SameReleaseText(hr, own)), "metadata", "name")
	}
	if len(others) > 0 {
		v.warn(finding.SharedRelease, inventory.SharedReleaseText(hr, others), "metadata", "name")
	}
}
