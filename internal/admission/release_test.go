package admission

import (
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
)

const releaseSpec = "interval: 5m\nchart: {spec: {chart: podinfo, sourceRef: {kind: HelmRepository, name: podinfo}}}\n"

func release(version, spec string) string {
	return strings.Replace(of("HelmRelease", spec), "source.toolkit.fluxcd.io/v1", "helm.toolkit.fluxcd.io/"+version, 1)
}

func TestRelease(t *testing.T) {
	a := admitted(t, release("v2", releaseSpec+"uninstall: {}\nvalues: {a: {b: [1]}}"))
	hr, ok := a.Typed.(*helmv2.HelmRelease)
	if !ok || len(a.Warnings) > 0 {
		t.Fatalf("%T, %v", a.Typed, a.Warnings)
	}
	spec := hr.Spec.Chart.Spec
	// case R6
	if spec.Version != "*" || spec.ReconcileStrategy != "ChartVersion" || *hr.Spec.Uninstall.DeletionPropagation != "background" {
		t.Errorf("defaults: %+v", spec)
	}
	if fmt.Sprint(hr.GetValues()) != "map[a:map[b:[1]]]" {
		t.Errorf("values %v", hr.GetValues())
	}
	// case R5
	a = admitted(t, release("v2", strings.Replace(releaseSpec, "chart: podinfo,", "chart: podinfo, verify: {secretRef: {name: cosign-key}},", 1)))
	if v := a.Typed.(*helmv2.HelmRelease).Spec.Chart.Spec.Verify; v.Provider != "cosign" || v.SecretRef.Name != "cosign-key" || len(a.Warnings) > 0 {
		t.Errorf("verify %+v, %v", v, a.Warnings)
	}
}

func TestReleaseRefused(t *testing.T) {
	invalid := `HelmRelease.helm.toolkit.fluxcd.io "x" is invalid: `
	const ref = "chartRef: {kind: OCIRepository, name: podinfo}\n"
	tests := []struct{ name, spec, want, hint string }{
		{"case R7: both", releaseSpec + ref, "f.yaml:5:1: " + invalid + `spec: Invalid value: either chart or chartRef must be set`, "keep spec.chart for a chart of a HelmRepository"},
		{"case R7: neither", "interval: 5m", "f.yaml:5:1: " + invalid + `spec: Invalid value: either chart or chartRef must be set`, "add spec.chart for a chart of a HelmRepository"},
		{"case R8: an OCIRepository in chart.spec", strings.Replace(releaseSpec, "HelmRepository", "OCIRepository", 1),
			"f.yaml:7:46: " + invalid + `spec.chart.spec.sourceRef.kind: Unsupported value: "OCIRepository": supported values: "HelmRepository", "GitRepository", "Bucket"`,
			"a HelmRelease names the OCIRepository with spec.chartRef instead of spec.chart"},
		{"a HelmRepository in chartRef", "interval: 5m\nchartRef: {kind: HelmRepository, name: x}",
			`spec.chartRef.kind: Unsupported value: "HelmRepository": supported values: "OCIRepository", "HelmChart", "ExternalArtifact"`,
			"a HelmRelease names the HelmRepository with spec.chart.spec.sourceRef, and the chart with spec.chart.spec.chart"},
		{"empty namespace", "interval: 5m\nchartRef: {kind: HelmChart, name: x, namespace: ''}", `spec.chartRef.namespace: Invalid value`, ""},
		{"install retries", releaseSpec + "install: {strategy: {name: RemediateOnFailure, retryInterval: 1m}}",
			`spec.install.strategy: Invalid value: .retryInterval cannot be set when .name is 'RemediateOnFailure'`, ""},
		{"upgrade retries", releaseSpec + "upgrade: {strategy: {name: RemediateOnFailure, retryInterval: 1m}}",
			`spec.upgrade.strategy: Invalid value: .retryInterval can only be set when .name is 'RetryOnFailure'`, ""},
		{"no kubeconfig", releaseSpec + "kubeConfig: {}", "exactly one of spec.kubeConfig.configMapRef or spec.kubeConfig.secretRef must be specified", ""},
		{"values kind", releaseSpec + "valuesFrom: [{kind: File, name: x}]", `spec.valuesFrom[0].kind: Unsupported value: "File": supported values: "Secret", "ConfigMap"`, ""},
		{"values path", releaseSpec + "valuesFrom: [{kind: Secret, name: x, targetPath: 'a b'}]", "spec.valuesFrom[0].targetPath: Invalid value", ""},
		{"interval of the chart", strings.Replace(releaseSpec, "chart: podinfo,", "chart: podinfo, interval: 99999999999h,", 1), "spec.chart.spec.interval: Invalid value", ""},
		{"valuesFile in v2", strings.Replace(releaseSpec, "chart: podinfo,", "chart: podinfo, valuesFile: a,", 1), `unknown field "spec.chart.spec.valuesFile"`,
			"v2 has no spec.chart.spec.valuesFile: put the file first in spec.chart.spec.valuesFiles"},
		{"no spec of the chart", "interval: 5m\nchart: {chart: podinfo, sourceRef: {kind: HelmRepository, name: x}}", `unknown field "spec.chart.chart"`,
			"did you mean spec.chart.spec.chart?; did you mean spec.chart.spec.sourceRef?"},
		{"matchOIDCIdentity", strings.Replace(releaseSpec, "chart: podinfo,", "chart: podinfo, verify: {provider: cosign, matchOIDCIdentity: []},", 1),
			`unknown field "spec.chart.spec.verify.matchOIDCIdentity"`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := refusal(t, release("v2", tt.spec))
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v\nwant  %s", err, tt.want)
			}
			if !strings.Contains(err.Hint(), tt.hint) {
				t.Errorf("hint %q, want %q", err.Hint(), tt.hint)
			}
		})
	}
	if err := refusal(t, release("v2alpha1", releaseSpec)); !strings.Contains(err.Error(), `no matches for kind "HelmRelease" in version "helm.toolkit.fluxcd.io/v2alpha1"`) ||
		err.Hint() != "the version is helm.toolkit.fluxcd.io/v2" {
		t.Errorf("version: %v, %s", err, err.Hint())
	}
}

func TestReleaseConversion(t *testing.T) {
	tests := []struct {
		name, version, spec, want string
		warnings                  []string
	}{
		{"case R9", "v2beta1", strings.Replace(releaseSpec, "chart: podinfo,", "chart: podinfo, valuesFile: a.yaml, valuesFiles: [b.yaml],", 1), "[a.yaml b.yaml]",
			[]string{"f.yaml:1:1: v2beta1 HelmRelease is deprecated, upgrade to v2",
				"f.yaml:7:34: spec.chart.spec.valuesFile was removed in v2: it is used as the first of spec.chart.spec.valuesFiles"}},
		{"v2beta2", "v2beta2", strings.Replace(releaseSpec, "chart: podinfo,", "chart: podinfo, valuesFile: a.yaml,", 1), "[a.yaml]",
			[]string{"f.yaml:1:1: v2beta2 HelmRelease is deprecated, upgrade to v2",
				"f.yaml:7:34: spec.chart.spec.valuesFile was removed in v2: it is used as the first of spec.chart.spec.valuesFiles"}},
		{"patches", "v2beta2", releaseSpec + "postRenderers: [{kustomize: {patchesJson6902: [], images: []}}]", "[]",
			[]string{"f.yaml:1:1: v2beta2 HelmRelease is deprecated, upgrade to v2",
				"f.yaml:8:32: spec.postRenderers[0].kustomize.patchesJson6902 was removed in v2 and is ignored: write it as patches"}},
		{"keyless", "v2", strings.Replace(releaseSpec, "chart: podinfo,", "chart: podinfo, verify: {provider: cosign},", 1), "[]",
			[]string{"f.yaml:7:34: spec.chart.spec.verify without secretRef accepts signatures from anyone, and a HelmRelease cannot restrict the signer"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := admitted(t, release(tt.version, tt.spec))
			hr := a.Typed.(*helmv2.HelmRelease)
			if got := fmt.Sprint(hr.Spec.Chart.Spec.ValuesFiles); got != tt.want || hr.APIVersion != "helm.toolkit.fluxcd.io/v2" {
				t.Errorf("%s: values files %s, want %s", hr.APIVersion, got, tt.want)
			}
			got := []string{}
			for _, w := range a.Warnings {
				got = append(got, w.String()[strings.Index(w.String(), "f.yaml"):])
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.warnings) {
				t.Errorf("warnings %q\nwant     %q", got, tt.warnings)
			}
		})
	}
	err := refusal(t, release("v2beta1", strings.Replace(releaseSpec, "chart: podinfo,", "chart: podinfo, valuesFile: [a],", 1)))
	if !strings.Contains(err.Error(), `spec.chart.spec.valuesFile: Invalid value: "array": spec.chart.spec.valuesFile in body must be of type string: "array"`) {
		t.Errorf("error %v", err)
	}
}

// TestReleaseDurations parses every duration of a release, as the controller would.
func TestReleaseDurations(t *testing.T) {
	for field, spec := range map[string]string{
		"interval":            strings.Replace(releaseSpec, "interval: 5m", "interval: 99999999999h", 1),
		"timeout":             releaseSpec + "timeout: 99999999999h\n",
		"chart.spec.interval": strings.Replace(releaseSpec, "chart: podinfo,", "chart: podinfo, interval: 99999999999h,", 1),
		"install.timeout":     releaseSpec + "install: {timeout: 99999999999h}\n",
		"upgrade.timeout":     releaseSpec + "upgrade: {timeout: 99999999999h}\n",
		"rollback.timeout":    releaseSpec + "rollback: {timeout: 99999999999h}\n",
		"uninstall.timeout":   releaseSpec + "uninstall: {timeout: 99999999999h}\n",
		"test.timeout":        releaseSpec + "test: {timeout: 99999999999h}\n",
	} {
		want := "spec." + field + `: Invalid value: "99999999999h": time: invalid duration "99999999999h"`
		if err := refusal(t, release("v2", spec)); !strings.Contains(err.Error(), want) {
			t.Errorf("error %v\nwant  %s", err, want)
		}
	}
}
