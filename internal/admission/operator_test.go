package admission

import (
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/operator"
)

// operatedExample returns a HelmRelease of Flux 1, in the API group of a kind.
func operatedExample(kind string) string {
	version := flux1Version
	if kind == olderFlux1Kind {
		version = olderFlux1Version
	}
	return "apiVersion: " + version + `
kind: HelmRelease
metadata: {name: podinfo, namespace: default}
spec:
  chart: {repository: "https://charts.example.org", name: podinfo, version: 3.2.0}
  releaseName: podinfo
  timeout: 600
  resetValues: true
  rollback: {enable: true, timeout: 60}
  valueFileSecrets: [{name: s}]
  valuesFrom: [{configMapKeyRef: {name: c, optional: true}}, {externalSourceRef: {url: "https://example.org/v.yaml"}}]
  values: {replicas: 2, cpu: 0.5, list: [1, a, null]}
`
}

// The types have all the fields of the schemas.
func TestOperatedTypes(t *testing.T) {
	for _, kind := range []string{flux1Kind, olderFlux1Kind} {
		adm, err := Admit(object(t, operatedExample(kind)))
		if err != nil {
			t.Fatal(err)
		}
		hr := adm.Typed.(*operator.HelmRelease)
		if hr.Name != "podinfo" || hr.Spec.Chart.Version != "3.2.0" || *hr.Spec.Timeout != 600 || !hr.Spec.Rollback.Enable ||
			!hr.Spec.ValuesFrom[0].ConfigMapKeyRef.Optional || hr.Spec.ValueFileSecrets[0].Name != "s" || hr.Spec.Values == nil {
			t.Errorf("%s: %+v", kind, hr.Spec)
		}
	}
}

// H2, H25: the older group has fewer fields, and strict rules; the newer one an enum.
func TestOperatedRefusals(t *testing.T) {
	for name, test := range map[string]struct{ kind, from, to, want string }{
		"H2 targetNamespace of v1beta1":   {olderFlux1Kind, "  timeout: 600", "  targetNamespace: team-a", `unknown field "spec.targetNamespace"`},
		"H25 helmVersion v4":              {flux1Kind, "  timeout: 600", "  helmVersion: v4", `spec.helmVersion: Unsupported value: "v4": supported values: "v2", "v3"`},
		"timeout as a duration":           {flux1Kind, "timeout: 600", "timeout: 10m", "spec.timeout in body must be of type integer"},
		"neither source in v1beta1":       {olderFlux1Kind, ", version: 3.2.0}", "}", `"spec.chart" must validate one and only one schema (oneOf). Found none valid`},
		"both sources in v1beta1":         {olderFlux1Kind, "chart: {", "chart: {git: u, path: p, ", `"spec.chart" must validate one and only one schema (oneOf). Found 2 valid`},
		"two places of values in v1beta1": {olderFlux1Kind, "[{configMapKeyRef", "[{secretKeyRef: {name: s}, configMapKeyRef", `"spec.valuesFrom[0]" must validate one and only one schema`},
		"releaseName in v1beta1":          {olderFlux1Kind, "releaseName: podinfo", "releaseName: Podinfo", "spec.releaseName in body should match"},
		"values in v1beta1":               {olderFlux1Kind, "values: {replicas: 2, cpu: 0.5, list: [1, a, null]}", "values: [1]", "spec.values in body must be of type object"},
		"version of the group":            {flux1Kind, flux1Version, "helm.fluxcd.io/v2", `no matches for kind "HelmRelease" in version "helm.fluxcd.io/v2"`},
	} {
		text := operatedExample(test.kind)
		if !strings.Contains(text, test.from) {
			t.Fatalf("%s: nothing to replace", name)
		}
		_, err := Admit(object(t, strings.Replace(text, test.from, test.to, 1)))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"chart: {}", "chart: {git: u}"} { // as in 1.0.0 and later
		spec := strings.Replace(operatedExample(flux1Kind), `chart: {repository: "https://charts.example.org", name: podinfo, version: 3.2.0}`, text, 1)
		if _, err := Admit(object(t, spec)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Fields that the operator does not read as they are written cause a warning.
func TestOperatedWarnings(t *testing.T) {
	git := `git: "https://git.example.org/org/repo", path: charts/podinfo`
	for name, test := range map[string]struct{ chart, rest, want string }{
		"H9 both sources":           {git + `, repository: "https://charts.example.org", name: podinfo, version: 3.2.0`, "", "spec.chart.repository has no effect"},
		"H18 chartPullSecret":       {`repository: "https://charts.example.org", name: podinfo, version: 3.2.0, chartPullSecret: {name: s}`, "", "spec.chart.chartPullSecret is not read by the operator"},
		"H6 range":                  {`repository: "https://charts.example.org", name: podinfo, version: ~3.2`, "", "spec.chart.version"},
		"H6 v prefix":               {`repository: "https://charts.example.org", name: podinfo, version: v3.2.0`, "", "spec.chart.version"},
		"H14 capitals":              {`git: "https://git.example.org/Org/Repo", path: p, secretRef: {name: s}`, "", "spec.chart.git has capitals"},
		"H14 namespace of a Secret": {git + `, secretRef: {name: s, namespace: ops}`, "", "spec.chart.secretRef names a Secret of another namespace"},
		"secretRef of ssh":          {`git: "ssh://git@git.example.org/org/repo", path: p, secretRef: {name: s}`, "", "spec.chart.secretRef is only read for https"},
		"leading slash":             {`git: "https://git.example.org/org/repo", path: /p`, "", "spec.chart.path begins with /"},
		"H25 helmVersion v2":        {git, "helmVersion: v2", "spec.helmVersion v2"},
		"resetValues":               {git, "resetValues: false", "spec.resetValues false"},
		"external values":           {git, `valuesFrom: [{externalSourceRef: {url: "https://example.org/v.yaml"}}]`, "spec.valuesFrom[0].externalSourceRef"},
		"nothing":                   {git, "", ""},
	} {
		text := "apiVersion: helm.fluxcd.io/v1\nkind: HelmRelease\nmetadata: {name: podinfo}\nspec:\n  chart: {" + test.chart + "}\n  " + test.rest + "\n"
		adm, err := Admit(object(t, text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var all string
		for _, w := range adm.Warnings {
			all += w.Message + "\n"
		}
		if test.want == "" && all != "" || !strings.Contains(all, test.want) {
			t.Errorf("%s: %q", name, all)
		}
	}
}
