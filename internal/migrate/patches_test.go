package migrate

import (
	"strings"
	"testing"
)

const patched = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec:
  patches:
  - patch: "PATCH"
    target: {kind: HelmRelease, version: v2beta1}
`

func TestPatches(t *testing.T) {
	t.Parallel()
	in := inputOf(t, strings.Replace(patched, `"PATCH"`, "|\n      ---\n      apiVersion: helm.toolkit.fluxcd.io/v2beta1\n      kind: HelmRelease\n      metadata: {name: a}\n      ---\n      apiVersion: helm.toolkit.fluxcd.io/v2beta1\n      kind: HelmRelease\n      metadata: {name: b}\n", 1))
	result := Plan(in)
	if got := texts(result.Refused); got != "" || len(result.Files) != 1 {
		t.Fatalf("refused %q, %d files", got, len(result.Files))
	}
	if got := string(result.Files[0].Text); strings.Contains(got, "v2beta1") || strings.Count(got, "fluxcd.io/v2\n") != 2 || !strings.Contains(got, "version: v2}") {
		t.Errorf("got\n%s", got)
	}
	if lines := []int{result.Changes[0].Line, result.Changes[1].Line}; lines[0] != 8 || lines[1] != 12 {
		t.Errorf("changes at %d", lines)
	}
}

// TestSelectors: the version of a selector follows the objects that it selects; without any, it is the version of Flux.
func TestSelectors(t *testing.T) {
	t.Parallel()
	text := strings.Replace(patched, `"PATCH"`, "x", 1) + "---\napiVersion: helm.toolkit.fluxcd.io/VERSION\nkind: KIND\nmetadata: {name: a, namespace: apps}\n"
	for _, test := range []struct{ version, kind, want string }{
		{"v2beta1", "HelmRelease", "v2"}, {"v2", "HelmRelease", "v2beta1"}, {"v2", "Other", "v2"},
	} {
		in := inputOf(t, strings.NewReplacer("VERSION", test.version, "KIND", test.kind).Replace(text))
		got := text
		if result := Plan(in); len(result.Files) > 0 {
			got = string(result.Files[0].Text)
		}
		if !strings.Contains(got, "version: "+test.want+"}") {
			t.Errorf("beside %s %s: got\n%s", test.kind, test.version, got)
		}
	}
}

func TestPatchesRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, old, new, want string }{
		{
			"a text in quotes with line breaks", `"PATCH"`, `"apiVersion: helm.toolkit.fluxcd.io/v2beta1\nkind: HelmRelease\nmetadata: {name: a}"`,
			"apps: the patch is not migrated: the new value contains control characters",
		},
		{
			"what SOPS has sealed", "spec:", "sops: {mac: 'ENC[x]', lastmodified: '2024-01-01', version: 3.8.1}\nspec:",
			"apps: HelmRelease v2beta1 is not migrated: " + sealedText,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := strings.Replace(patched, test.old, test.new, 1)
			if test.old == `"PATCH"` {
				text = strings.Replace(text, "version: v2beta1", "version: v2", 1)
			}
			wantRefusal(t, Plan(inputOf(t, text)), test.want)
		})
	}
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	of := func(version string, spec map[string]any) map[string]any {
		return map[string]any{"apiVersion": version, "kind": "HelmRelease", "spec": spec}
	}
	before := of("helm.toolkit.fluxcd.io/v2beta1", map[string]any{"chart": "a", "install": map[string]any{"crds": "Create"}, "of": []any{"version: v2beta1", 1}})
	after := of("helm.toolkit.fluxcd.io/v2", map[string]any{"chartRef": "a", "of": []any{"version: v2", 1}})
	if got := strings.Join(Differences(before, after), " "); got != "spec.install" {
		t.Errorf("got %q", got)
	}
}
