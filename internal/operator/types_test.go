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

// H9: Git wins if both sources are complete; an incomplete source does not count.
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

// H13: a URL in the form of scp is converted, other URLs stay.
func TestGitURL(t *testing.T) {
	for url, want := range map[string]string{
		"git@git.example.org:org/repo":              "ssh://git@git.example.org/org/repo",
		"git@git.example.org:/org/repo.git":         "ssh://git@git.example.org/org/repo.git",
		"ssh://git@git.example.org:2222/org/repo":   "ssh://git@git.example.org:2222/org/repo",
		"https://git.example.org/Org/Repo":          "https://git.example.org/Org/Repo",
		"https://user@git.example.org:8443/o/r.git": "https://user@git.example.org:8443/o/r.git",
	} {
		if got := (&Chart{Git: url}).GitURL(); got != want {
			t.Errorf("%s: %s, not %s", url, got, want)
		}
	}
}

// H14: the operator looks at the Secret of https URLs alone.
func TestReadsSecret(t *testing.T) {
	for url, want := range map[string]bool{
		"https://git.example.org/o/r": true, "HTTPS://git.example.org/o/r": true,
		"http://git.example.org/o/r": false, "git@git.example.org:o/r": false, "ssh://git@git.example.org/o/r": false,
	} {
		if got := (&Chart{Git: url, SecretRef: &ObjectReference{Name: "s"}}).ReadsSecret(); got != want {
			t.Errorf("%s: %v", url, got)
		}
	}
	if (&Chart{Git: "https://git.example.org/o/r"}).ReadsSecret() {
		t.Error("a Secret that is not named is read")
	}
}

// Flux 1 ignores an object if one of two annotations is "true".
func TestIgnored(t *testing.T) {
	for _, test := range []struct {
		name, value string
		want        bool
	}{
		{"fluxcd.io/ignore", "true", true},
		{"flux.weave.works/ignore", "true", true},
		{"fluxcd.io/ignore", "sync_only", false},
		{"fluxcd.io/ignore", "false", false},
		{"fluxcd.io/ignored", "true", false},
	} {
		hr := &HelmRelease{}
		hr.Annotations = map[string]string{test.name: test.value}
		if got := hr.Ignored(); got != test.want {
			t.Errorf("%s: %s: %v", test.name, test.value, got)
		}
	}
}

// TestRetries: a release that was rolled back is tried again as often as it allows.
func TestRetries(t *testing.T) {
	count := func(n int64) *int64 { return &n }
	for name, test := range map[string]struct {
		rollback   Rollback
		rolledBack bool
		count      int64
		want       bool
	}{
		"never rolled back":    {Rollback{Enable: true, Retry: true}, false, 0, false},
		"the first time":       {Rollback{Enable: true, Retry: true}, true, 1, true},
		"the last time":        {Rollback{Enable: true, Retry: true}, true, 5, true},
		"too often":            {Rollback{Enable: true, Retry: true}, true, 6, false},
		"not more than once":   {Rollback{Enable: true, Retry: true, MaxRetries: count(1)}, true, 2, false},
		"for ever":             {Rollback{Enable: true, Retry: true, MaxRetries: count(0)}, true, 100, true},
		"without retry":        {Rollback{Enable: true}, true, 1, false},
		"retry without enable": {Rollback{Retry: true}, true, 1, false},
	} {
		hr := &HelmRelease{}
		hr.Spec.Rollback, hr.Status.RollbackCount = test.rollback, test.count
		if test.rolledBack {
			hr.Status.Conditions = []Condition{{Type: "Released", Status: "False"}, {Type: "RolledBack", Status: "True"}}
		}
		if got := hr.Retries(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
