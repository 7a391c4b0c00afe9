package admission

import (
	"fmt"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

const (
	releaseKind = helmv2.HelmReleaseKind
	releaseV2   = manifest.ReleaseGroup + "/v2"
)

func templateSpec(spec map[string]any) map[string]any {
	return manifest.At[map[string]any](spec, "chart", "spec")
}

// convertRelease converts a HelmRelease of an old version to v2.
func (r *review) convertRelease() {
	spec := templateSpec(r.spec())
	if v, ok := spec["valuesFile"]; ok {
		delete(spec, "valuesFile")
		r.convertValuesFile(v, "spec.chart.spec")
	}
	renderers, _ := r.spec()["postRenderers"].([]any)
	for i, renderer := range renderers {
		kustomize := manifest.At[map[string]any](renderer, "kustomize")
		for _, name := range []string{"patchesStrategicMerge", "patchesJson6902"} {
			if _, ok := kustomize[name]; ok {
				delete(kustomize, name)
				at := fmt.Sprintf("spec.postRenderers[%d].kustomize.%s", i, name)
				r.warnAt(finding.RemovedField, at, "%s was removed in v2 and is ignored: write it as patches", at)
			}
		}
	}
}

// releaseHint returns a hint for a mistake that is specific to HelmReleases, or "".
func (r *review) releaseHint(value any, e *field.Error) string {
	_, chart := r.spec()["chart"]
	_, ref := r.spec()["chartRef"]
	switch {
	case slices.Contains(r.broken, e) && e.Field == "spec" && chart && ref:
		return "keep spec.chart for a chart of a HelmRepository, GitRepository or Bucket, or spec.chartRef for an OCIRepository or HelmChart"
	case slices.Contains(r.broken, e) && e.Field == "spec" && !chart && !ref:
		return "add spec.chart for a chart of a HelmRepository, GitRepository or Bucket, or spec.chartRef for an OCIRepository or HelmChart"
	case e.Field == "spec.chart.spec.sourceRef.kind" && (value == "OCIRepository" || value == "HelmChart"):
		return fmt.Sprintf("a HelmRelease names the %s with spec.chartRef instead of spec.chart", value)
	case e.Field == "spec.chartRef.kind" && (value == "HelmRepository" || value == "GitRepository" || value == "Bucket"):
		return fmt.Sprintf("a HelmRelease names the %s with spec.chart.spec.sourceRef, and the chart with spec.chart.spec.chart", value)
	}
	return ""
}

// warnRelease warns of a verification by cosign without keys: a HelmRelease has no field for the signer's identity.
func (r *review) warnRelease(o *helmv2.HelmRelease) {
	if o.Spec.Chart == nil {
		return
	}
	if v := o.Spec.Chart.Spec.Verify; v != nil && v.Provider == "cosign" && v.SecretRef == nil {
		r.warnAt(finding.VerifyAnyone, "spec.chart.spec.verify",
			"spec.chart.spec.verify without secretRef accepts signatures from anyone, and a HelmRelease cannot restrict the signer")
	}
}
