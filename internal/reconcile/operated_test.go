package reconcile

import (
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/status"
)

// operatedWorld contains a HelmRelease of Flux 1 for each source of a chart and of values.
const operatedWorld = `
-- _repo/charts --
podinfo 3.2.0
sub 1.0.1
sub 1.0.2
-- _repo/values.yaml --
replicaCount: 2
-- _git/podinfo/Chart.yaml --
{apiVersion: v2, name: podinfo, version: 3.2.0}
-- _git/podinfo/prod.yaml --
x: 2
-- _git/podinfo/logo.png --
no picture
-- _git/shared.yaml --
x: 3
-- _git/parent/Chart.yaml --
{apiVersion: v2, name: parent, version: 1.0.0, dependencies: [{name: sub, version: ~1.0, repository: "http://repo.test"}]}
-- _git/parent/Chart.lock --
dependencies: [{name: sub, version: 1.0.1, repository: "http://repo.test"}]
digest: sha256:c2b5f7a9f0b6cbdcbf4b2b4bd5a0f6b0b1f5f6b0b1f5f6b0b1f5f6b0b1f5f6b0
generated: "2026-01-01T00:00:00Z"
-- all.yaml --
apiVersion: v1
kind: List
items:
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: repository}, spec: {chart: {repository: "http://repo.test", name: podinfo, version: 3.2.0}}}
- {apiVersion: flux.weave.works/v1beta1, kind: HelmRelease, metadata: {name: older}, spec: {chart: {repository: "http://repo.test", name: podinfo, version: 3.x}}}
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: git}, spec: {chart: {git: "http://git.test/charts.git", ref: main, path: podinfo}}}
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: none}, spec: {chart: {git: "http://git.test/charts.git"}}}
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: version}, spec: {chart: {repository: "http://repo.test", name: podinfo, version: 9.9.9}}}
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: branch}, spec: {chart: {git: "http://git.test/charts.git", path: podinfo}}}
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: path}, spec: {chart: {git: "http://git.test/charts.git", ref: main, path: nothing}}}
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: ssh}, spec: {chart: {git: "git@git.test:charts.git", path: podinfo}}}
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: secret}, spec: {chart: {git: "https://git.test/charts.git", path: podinfo, secretRef: {name: half}}}}
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: parent}, spec: {chart: {git: "http://git.test/charts.git", ref: main, path: parent}}}
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: vendored}, spec: {chart: {git: "http://git.test/charts.git", ref: main, path: parent, skipDepUpdate: true}}}
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: file}, spec: {chart: {git: "http://git.test/charts.git", ref: main, path: podinfo}, valuesFrom: [{chartFileRef: {path: prod.yaml}}]}}
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: beside}, spec: {chart: {git: "http://git.test/charts.git", ref: main, path: podinfo}, valuesFrom: [{chartFileRef: {path: ../shared.yaml}}]}}
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: outside}, spec: {chart: {git: "http://git.test/charts.git", ref: main, path: podinfo}, valuesFrom: [{chartFileRef: {path: ../../x.yaml}}]}}
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: archive}, spec: {chart: {repository: "http://repo.test", name: podinfo, version: 3.2.0}, valuesFrom: [{chartFileRef: {path: prod.yaml}}]}}
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: url}, spec: {chart: {repository: "http://repo.test", name: podinfo, version: 3.2.0}, valuesFrom: [{externalSourceRef: {url: "http://repo.test/values.yaml"}}]}}
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: nourl}, spec: {chart: {repository: "http://repo.test", name: podinfo, version: 3.2.0}, valuesFrom: [{externalSourceRef: {url: "http://repo.test/nothing.yaml"}}]}}
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: missing}, spec: {chart: {repository: "http://repo.test", name: podinfo, version: 3.2.0}, valuesFrom: [{secretKeyRef: {name: nowhere}}]}}
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: list}, spec: {chart: {repository: "http://repo.test", name: podinfo, version: 3.2.0}, values: [1]}}
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: name-of-so-many-characters-that-helm-does-not-take-it}, spec: {chart: {repository: "http://repo.test", name: podinfo, version: 3.2.0}}}
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: one}, spec: {releaseName: web, chart: {repository: "http://repo.test", name: podinfo, version: 3.2.0}}}
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: two}, spec: {releaseName: web, chart: {repository: "http://repo.test", name: podinfo, version: 3.2.0}}}
- {apiVersion: helm.fluxcd.io/v1, kind: HelmRelease, metadata: {name: ignored, annotations: {fluxcd.io/ignore: "true"}}, spec: {chart: {repository: "http://repo.test", name: podinfo, version: 3.2.0}}}
- {apiVersion: v1, kind: Secret, metadata: {name: half}, stringData: {username: user}}
`

// operatedText returns the phase and the conditions of a HelmRelease of Flux 1.
func operatedText(r *Result) string {
	phase, _ := r.Status["phase"].(string)
	texts := []string{phase}
	for _, c := range r.common.conditions {
		texts = append(texts, c.Type+" "+string(c.Status)+" "+c.Reason+" "+c.Message)
	}
	return strings.Join(texts, "; ")
}

// H1, H4, H7 to H18, H21 to H25: the operator's status for a chart and its values.
func TestOperatedReleases(t *testing.T) {
	w := newWorld(t, operatedWorld)
	results := w.run(t, Options{})
	fetched, cloned := "ChartFetched; ChartFetched True RepoChartInCache chart fetched: podinfo-3.2.0.tgz", "ChartFetched; ChartFetched True GitRepoCloned successfully cloned chart revision: "
	notFetched, notMirrored := "ChartFetchFailed; ChartFetched False RepoFetchFailed ", "ChartFetchFailed; ChartFetched Unknown GitRepoNotCloned git repo not mirrored yet: "
	failed := "Released False Failed failed to compose values for release: "
	for name, want := range map[string][]string{
		"repository": {fetched},
		"git":        {cloned},
		"none":       {notFetched + "could not find valid chart source configuration for release; Released False RepoFetchFailed could not find"},
		"version":    {notFetched + "chart download failed: ", "Released False RepoFetchFailed chart download failed: "},
		"branch":     {"ChartFetchFailed; ChartFetched False GitRepoNotCloned problem cloning from local git mirror: ", "bad revision 'master'", "; Released False GitRepoNotCloned "},
		"path":       {notFetched + "chart download failed: ", "; Released False RepoFetchFailed "},
		"ssh":        {notMirrored, "ssh: no identity"},
		"secret":     {notMirrored + "could not find password key in secret default/half"},
		"parent":     {cloned},
		"vendored":   {"Failed; ChartFetched True GitRepoCloned ", "; Released False UpdateDependencyFailed ", "the chart requires 'sub', which is not in its directory charts"},
		"file":       {cloned},
		"beside":     {cloned},
		"outside":    {"Failed; ", failed + "unable to read value file from path ../../x.yaml: "},
		"archive":    {"Failed; ", failed + "unable to read value file from path prod.yaml: "},
		"url":        {fetched},
		"nourl":      {"Failed; ", failed + "unable to read value file from URL http://repo.test/nothing.yaml"},
		"missing":    {"Failed; ", failed + `secrets "nowhere" not found`},
		"list":       {"Failed; ", failed + "spec.values is not a map"},
		"name-of-so-many-characters-that-helm-does-not-take-it": {"Failed; Released False Failed the release name "},
		"one":     {"Failed; " + strings.TrimPrefix(fetched, "ChartFetched; "), "Released False Failed failed to determine sync action for release: release appears to be managed by 'default:helmrelease/two'"},
		"two":     {"Failed; ", "release appears to be managed by 'default:helmrelease/one'"},
		"ignored": {""},
	} {
		r := results["HelmRelease.helm.fluxcd.io/"+name]
		if r == nil {
			t.Errorf("%s has no result", name)
			continue
		}
		text := operatedText(r)
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %q does not have %q", name, text, part)
			}
		}
		if bad := strings.Contains(text, "False") || strings.Contains(text, "Unknown"); bad != (r.State == Failed) {
			t.Errorf("%s: %v with %q", name, r.State, text)
		}
		if events := len(r.Events); (events > 0) != (r.State == Failed) {
			t.Errorf("%s: %d events with %v", name, events, r.State)
		}
	}
	if r := results["HelmRelease.helm.fluxcd.io/ignored"]; r.State != Suspended {
		t.Errorf("what Flux 1 would not apply is %v", r.State)
	}
	if r := results["HelmRelease.flux.weave.works/older"]; r == nil || !strings.HasPrefix(operatedText(r), fetched) {
		t.Errorf("v1beta1: %v", r)
	}
	wantChecksums(t, results)
	wantChartWarnings(t, results)
}

// wantChecksums compares the checksums of values: H1 has no values, H23 has files of the chart, H24 has a URL.
func wantChecksums(t *testing.T, results map[string]*Result) {
	t.Helper()
	for name, want := range map[string]string{
		"repository": "ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356",
		"url":        "e15c415d62760896bd8bec192a44c5716dc224db9e0fc609b9ac14718f8f9e56",
		"file":       "3fbd2bc8070a780f30aebb45bdba4867a032826212223287fd0a19837bd39825",
	} {
		if got := results["HelmRelease.helm.fluxcd.io/"+name].notes[status.ValuesChecksumAnnotation]; got != want {
			t.Errorf("the checksum of %s is %q, not %s", name, got, want)
		}
	}
}

// wantChartWarnings compares the warnings about differences from Flux 2: H15, H16.
func wantChartWarnings(t *testing.T, results map[string]*Result) {
	t.Helper()
	for name, want := range map[string]string{
		"git":    "logo.png of the chart would be left out in Flux 2, which reads .sourceignore and has defaults",
		"parent": "the chart gets sub 1.0.2, although its lock file has 1.0.1: the Helm Operator does not read that file, and Flux 2 does",
	} {
		warnings := results["HelmChart/helm-operator-default-"+name].Warnings
		if !slices.ContainsFunc(warnings, func(w Warning) bool { return w.Text == want }) {
			t.Errorf("%s: %v, without %q", name, warnings, want)
		}
	}
}

// With Choose, a run reports the chart that would be fetched, and fetches only the values that it needs.
func TestOperatedChosen(t *testing.T) {
	w := newWorld(t, operatedWorld)
	results := w.run(t, Options{Until: Choose})
	for name, want := range map[string]string{
		"HelmRelease.helm.fluxcd.io/repository": "; ChartFetched Unknown Progressing fetching chart: new 'podinfo' chart with version '3.2.0'",
		"HelmRelease.helm.fluxcd.io/git":        "; ChartFetched Unknown Progressing fetching chart: new 'podinfo' chart with version '3.2.0'",
		"HelmRelease.flux.weave.works/older":    "; ChartFetched Unknown Progressing fetching chart: new 'podinfo' chart with version '3.2.0'",
	} {
		r := results[name]
		if got := operatedText(r); got != want {
			t.Errorf("%s: %q, not %q", name, got, want)
		}
		if r.State != Resolved || r.Resolution == nil || r.Resolution.Version != "3.2.0" {
			t.Errorf("%s: %v, %+v", name, r.State, r.Resolution)
		}
	}
	if r := results["HelmRelease.helm.fluxcd.io/version"]; r.State != Failed {
		t.Errorf("a version that does not exist is %v", r.State)
	}
	// After a fetch, Choose reports the same status.
	before := operatedText(w.run(t, Options{})["HelmRelease.helm.fluxcd.io/repository"])
	if again := operatedText(w.run(t, Options{Until: Choose})["HelmRelease.helm.fluxcd.io/repository"]); again != before {
		t.Errorf("%q after %q", again, before)
	}
}

// With MissingAnonymous, a release with values from a missing Secret has a chart, but no checksum.
func TestOperatedForgivenSecret(t *testing.T) {
	w := newWorld(t, operatedWorld)
	r := w.run(t, Options{MissingSecrets: credential.MissingAnonymous})["HelmRelease.helm.fluxcd.io/missing"]
	if got := operatedText(r); !strings.HasPrefix(got, "ChartFetched; ") {
		t.Errorf("%q", got)
	}
	if sum := r.notes[status.ValuesChecksumAnnotation]; sum != "" {
		t.Errorf("there is the checksum %s of values that are not known", sum)
	}
	if !slices.ContainsFunc(r.Warnings, func(w Warning) bool { return w.Code == finding.MissingSecret }) {
		t.Errorf("%v", r.Warnings)
	}
}
