package render

import (
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/kustomize"
)

const helmOutput = `---
# Source: app/charts/sub/crds/crd.yaml
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.example.org
---
# Source: app/templates/deployment.yaml
apiVersion: apps/v1
kind: Deployment
metadata:
  name: app
spec:
  template:
    spec:
      containers:
      - name: app
        image: example.org/app:1.0
---
# Source: app/templates/role.yaml
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: app
---
# Source: app/templates/job.yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: hook
  annotations:
    "helm.sh/hook": pre-install
spec:
  template:
    spec:
      containers:
      - name: app
        image: example.org/app:1.0
`

func postRendered(t *testing.T, spec helmv2.HelmReleaseSpec) map[string]string {
	t.Helper()
	hr := &helmv2.HelmRelease{Spec: spec}
	hr.Name, hr.Namespace = "app", "apps"
	out, err := PostRender(t.Context(), hr, []byte(helmOutput))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, text := range strings.Split(string(out), "---\n") {
		for _, kind := range []string{"CustomResourceDefinition", "Deployment", "ClusterRole", "Job"} {
			if strings.Contains(text, "kind: "+kind+"\n") {
				found[kind] = text
			}
		}
	}
	if len(found) != 4 {
		t.Fatalf("not all objects are there:\n%s", out)
	}
	return found
}

// TestPostRender: post renderers, then common metadata, then the labels of the owner; hooks as the strategy says.
func TestPostRender(t *testing.T) {
	spec := helmv2.HelmReleaseSpec{
		TargetNamespace: "web",
		CommonMetadata:  &helmv2.CommonMetadata{Labels: map[string]string{"team": "web", "helm.toolkit.fluxcd.io/name": "other"}, Annotations: map[string]string{"note": "x"}},
		PostRenderers: []helmv2.PostRenderer{
			{Kustomize: &helmv2.Kustomize{
				Images:  []kustomize.Image{{Name: "example.org/app", NewTag: "2.0"}},
				Patches: []kustomize.Patch{{Target: &kustomize.Selector{Kind: "Deployment"}, Patch: `[{"op": "add", "path": "/spec/replicas", "value": 3}]`}},
			}},
			{Kustomize: &helmv2.Kustomize{Images: []kustomize.Image{{Name: "example.org/app", NewName: "mirror.test/app"}}}},
		},
	}
	for strategy, hooked := range map[helmv2.PostRenderStrategy]bool{"": true, "combined": true, "separate": true, "nohooks": false} {
		spec.PostRenderStrategy = strategy
		found := postRendered(t, spec)
		for kind, wanted := range map[string][]string{
			"Deployment":               {"image: mirror.test/app:2.0\n", "replicas: 3\n", "team: web\n", "note: x\n", "helm.toolkit.fluxcd.io/name: app\n", "namespace: web\n"},
			"ClusterRole":              {"team: web\n", "helm.toolkit.fluxcd.io/namespace: apps\n"},
			"CustomResourceDefinition": {"helm.toolkit.fluxcd.io/name: app\n"},
		} {
			for _, text := range wanted {
				if !strings.Contains(found[kind], text) {
					t.Errorf("%q: no %q in\n%s", strategy, text, found[kind])
				}
			}
		}
		if got := strings.Contains(found["Job"], "mirror.test") && strings.Contains(found["Job"], "team: web"); got != hooked {
			t.Errorf("%q: the hook was changed: %t\n%s", strategy, got, found["Job"])
		}
		if strings.Contains(found["CustomResourceDefinition"], "team") || strings.Contains(found["ClusterRole"], " namespace: web") {
			t.Errorf("%q:\n%s\n%s", strategy, found["CustomResourceDefinition"], found["ClusterRole"])
		}
	}
}

// TestPostRenderRefuses reports patches that fit nothing there is, and reads no file and no address.
func TestPostRenderRefuses(t *testing.T) {
	for _, patch := range []string{
		`[{"op": "remove", "path": "/spec/nothing"}]`, "not a patch", "path: /etc/passwd",
	} {
		hr := &helmv2.HelmRelease{}
		hr.Name, hr.Namespace = "app", "apps"
		hr.Spec.PostRenderers = []helmv2.PostRenderer{{Kustomize: &helmv2.Kustomize{Patches: []kustomize.Patch{{Target: &kustomize.Selector{Kind: "Deployment"}, Patch: patch}}}}}
		if out, err := PostRender(t.Context(), hr, []byte(helmOutput)); err == nil {
			t.Errorf("%s is accepted:\n%s", patch, out)
		}
	}
	hr := &helmv2.HelmRelease{}
	if _, err := PostRender(t.Context(), hr, []byte("---\n# Source: app/templates/a.yaml\nkind: [\n")); err == nil {
		t.Error("what is no YAML is accepted")
	}
	if out, err := PostRender(t.Context(), hr, []byte("---\n# Source: app/templates/a.yaml\n")); err != nil || strings.Contains(string(out), "kind") {
		t.Errorf("an empty document: %q, %v", out, err)
	}
}
