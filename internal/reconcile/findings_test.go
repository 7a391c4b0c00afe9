package reconcile

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// failing contains objects that fail in different ways.
const failing = `
-- _repo/charts --
podinfo 6.5.0
-- _registry/charts --
charts/podinfo 6.5.0
-- all.yaml --
apiVersion: v1
kind: List
items:
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {name: repo}, spec: {interval: 5m, url: "http://repo.test"}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {name: login}, spec: {interval: 5m, url: "http://repo.test", secretRef: {name: absent}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: git}, spec: {interval: 5m, url: "https://git.test/x", secretRef: {name: absent}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: tag}, spec: {interval: 5m, insecure: true, url: "oci://registry.test/charts/podinfo", ref: {tag: v6.5.0}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: fine}, spec: {interval: 5m, insecure: true, url: "oci://registry.test/charts/podinfo", ref: {semver: ^6}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, metadata: {name: unknown}, spec: {interval: 5m, chart: podinfos, sourceRef: {kind: HelmRepository, name: repo}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, metadata: {name: version}, spec: {interval: 5m, chart: podinfo, version: ^7, sourceRef: {kind: HelmRepository, name: repo}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, metadata: {name: source}, spec: {interval: 5m, chart: podinfo, sourceRef: {kind: HelmRepository, name: nowhere}}}
- {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, metadata: {name: fine}, spec: {interval: 5m, chart: podinfo, version: 6.x, sourceRef: {kind: HelmRepository, name: repo}}}
`

// TestFailureFindings verifies that each failure has a code, the position of its field, and advice.
func TestFailureFindings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, failing)
	results := w.run(t, Options{Until: Choose})
	for name, want := range map[string]struct {
		code finding.Code
		fix  string
	}{
		"HelmRepository/login": {finding.MissingSecret, ""},
		"GitRepository/git":    {finding.MissingSecret, "--source GitRepository/default/git=PATH"},
		"OCIRepository/tag":    {finding.NotFound, "6.5.0"},
		"HelmChart/unknown":    {finding.UnknownChart, "podinfo"},
		"HelmChart/version":    {finding.NoMatch, ""},
		"HelmChart/source":     {finding.MissingSource, ""},
	} {
		r := results[name]
		f, ok := r.FailureFinding()
		if !ok {
			t.Errorf("%s: no finding: %s", name, r.Message())
			continue
		}
		if f.Code != want.code || f.Severity != finding.Error || f.Pos.Line == 0 || !strings.Contains(f.Fix, want.fix) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	for _, name := range []string{"HelmChart/fine", "OCIRepository/fine"} {
		if f, ok := results[name].FailureFinding(); ok || len(results[name].Warnings) > 0 {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// deciding records the decisions of a run, by KIND/NAME.
type deciding struct {
	silent

	mu    sync.Mutex
	texts map[string][]string
}

func (d *deciding) Decided(adm *admission.Admitted, decision string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := adm.Object.Kind + "/" + adm.Object.Name
	d.texts[name] = append(d.texts[name], decision)
}

// TestDecisions verifies that a run reports the credentials that it used or could not find, the candidates, and the
// reused artifacts. Without the option it reports nothing.
func TestDecisions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, failing)
	decided := &deciding{texts: map[string][]string{}}
	w.progress = decided
	w.run(t, Options{})
	if len(decided.texts) > 0 {
		t.Errorf("nobody asked for %q", decided.texts)
	}
	w.run(t, Options{Decisions: true, MissingSecrets: credential.MissingAnonymous})
	for name, want := range map[string][]string{
		"HelmRepository/repo":  {"credentials: there is no spec.secretRef"},
		"HelmRepository/login": {"credentials: spec.secretRef is Secret default/absent, which is not available: --missing-secrets is anonymous"},
		"GitRepository/git":    {"credentials: spec.secretRef is Secret default/absent, which is not available"},
		"HelmChart/fine":       {"candidates: 6.5.0; '6.x' selects 6.5.0", "stored: helmchart/default/fine/podinfo-6.5.0.tgz is what this run would store, and stays"},
		"HelmChart/version":    {"candidates: 6.5.0; '^7' selects none of them"},
		"OCIRepository/fine":   {"candidates: tags: 1; '^6' selects 6.5.0", "credentials: none are sent to the registry"},
	} {
		for _, text := range want {
			if !slices.ContainsFunc(decided.texts[name], func(said string) bool { return strings.Contains(said, text) }) {
				t.Errorf("%s: no %q in %q", name, text, decided.texts[name])
			}
		}
	}
}
