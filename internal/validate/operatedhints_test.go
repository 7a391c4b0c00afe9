package validate

import (
	"slices"
	"testing"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// Hints about an object that a HelmRelease of Flux 1 made name only fields of the release.
func TestOperatedHints(t *testing.T) {
	release := &manifest.Object{APIVersion: "helm.fluxcd.io/v1", Kind: "HelmRelease.helm.fluxcd.io", Namespace: "default", Name: "podinfo"}
	git := func(spec map[string]any) *manifest.Object {
		return &manifest.Object{Kind: "GitRepository", Namespace: "default", Name: "g", Origin: release, Content: map[string]any{"spec": spec}}
	}
	repository := &manifest.Object{Kind: "HelmRepository", Namespace: "default", Name: "r", Origin: release}
	directory := "replace it by a directory with --source GitRepository/default/g=PATH"
	for name, test := range map[string]struct {
		obj  *manifest.Object
		code finding.Code
		hint string
		want string
	}{
		"an object of Flux 2": {&manifest.Object{Kind: "GitRepository"}, finding.Authentication, "refer with spec.secretRef", "refer with spec.secretRef"},
		"H18: a closed repository": {repository, finding.Authentication, "refer with spec.secretRef",
			"the operator used the logins of its pod, which no field of the release names: write the release for Flux 2 with 'helmsrc migrate', " +
				"where spec.secretRef of the HelmRepository does, or replace it by a directory with --source HelmRepository/default/r=PATH"},
		"H13: ssh": {git(map[string]any{"url": "ssh://git@git.test/a"}), finding.Authentication, "in spec.secretRef",
			"the operator's pod had a key for the repository, which no field of the release names: " + directory},
		"https": {git(map[string]any{"url": "https://git.test/a"}), finding.Authentication, "in spec.secretRef",
			"name a Secret with username and password in spec.chart.secretRef, or " + directory},
		"https with a Secret": {git(map[string]any{"url": "https://git.test/a", "secretRef": map[string]any{"name": "s"}}), finding.Authentication,
			"the server does not accept the credentials of spec.secretRef", "the server does not accept the credentials of spec.chart.secretRef"},
		"http":       {git(map[string]any{"url": "http://git.test/a"}), finding.Authentication, "in spec.secretRef", "the operator sends a login to https URLs only: " + directory},
		"a registry": {repository, finding.OCIWithoutType, "add 'type: oci'", "the operator does not support charts from registries: write the release for Flux 2 with 'helmsrc migrate', which does"},
		"no index":   {repository, finding.NotFound, "spec.url is; type: oci", "spec.chart.repository must be the directory that contains index.yaml"},
		"no such field": {repository, finding.Certificate, "refer with spec.certSecretRef to a Secret",
			"refer with spec.certSecretRef to a Secret; a release of Flux 1 has no such field: write the release for Flux 2 with 'helmsrc migrate', which has it"},
		"the catalogue's hint": {&manifest.Object{Kind: "HelmChart", Namespace: "default", Name: "c", Origin: release}, finding.UnknownChart, "",
			"correct spec.chart.name: the name of an entry of the index, of a repository of the registry, or the path of a directory with a valid Chart.yaml"},
		"another name": {repository, finding.Certificate, "spec.url has to begin with http://", "spec.chart.repository has to begin with http://"},
	} {
		var hints []string
		if test.hint != "" {
			hints = []string{test.hint}
		}
		if got := operatedHints(test.obj, test.code, hints); !slices.Equal(got, []string{test.want}) {
			t.Errorf("%s: %q, not %q", name, got, test.want)
		}
	}
}
