package operator

import "testing"

// H2: the release name is given, or made of the namespaces and the name.
func TestReleaseName(t *testing.T) {
	for _, test := range []struct{ releaseName, target, want, namespace string }{
		{"", "", "default-podinfo", "default"},
		{"", "default", "default-podinfo", "default"},
		{"", "team-a", "default-team-a-podinfo", "team-a"},
		{"x", "team-a", "x", "team-a"},
		{"x", "", "x", "default"},
	} {
		hr := &HelmRelease{}
		hr.Namespace, hr.Name = "default", "podinfo"
		hr.Spec.ReleaseName, hr.Spec.TargetNamespace = test.releaseName, test.target
		if got := hr.GetReleaseName(); got != test.want {
			t.Errorf("releaseName %q, targetNamespace %q: %q, not %q", test.releaseName, test.target, got, test.want)
		}
		if got := hr.GetTargetNamespace(); got != test.namespace {
			t.Errorf("targetNamespace %q: %q, not %q", test.target, got, test.namespace)
		}
	}
}

// H9: Git wins where both are complete; what is not complete does not count.
func TestSource(t *testing.T) {
	for name, test := range map[string]struct {
		chart Chart
		want  SourceKind
	}{
		"nothing":              {Chart{}, NoSource},
		"git only":             {Chart{Git: "u"}, NoSource},
		"no version":           {Chart{Repository: "u", Name: "n"}, NoSource},
		"repository":           {Chart{Repository: "u", Name: "n", Version: "1"}, RepositorySource},
		"git":                  {Chart{Git: "u", Path: "p"}, GitSource},
		"both":                 {Chart{Git: "u", Path: "p", Repository: "u", Name: "n", Version: "1"}, GitSource},
		"git without path too": {Chart{Git: "u", Repository: "u", Name: "n", Version: "1"}, RepositorySource},
	} {
		if got := test.chart.Source(); got != test.want {
			t.Errorf("%s: %d, not %d", name, got, test.want)
		}
	}
}
