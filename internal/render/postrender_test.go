package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/kustomize"
	"helm.sh/helm/v3/pkg/releaseutil"

	"github.com/helmsrc/helmsrc/internal/bound"
)

const helmCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.example.org
`

const helmOutput = `---
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
	out, err := PostRender(t.Context(), Release{HelmRelease: hr, CRDs: [][]byte{[]byte(helmCRD)}, Manifests: []byte(helmOutput)})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, text := range strings.Split(string(out.CRDs)+string(out.Objects), "---\n") {
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

// TestPostRender applies post renderers, then common metadata, then the labels of the owner; hooks according to the strategy.
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

// TestPostRenderRefuses reports patches that match no object, and reads no file and no address.
func TestPostRenderRefuses(t *testing.T) {
	for _, patch := range []string{
		`[{"op": "remove", "path": "/spec/nothing"}]`, "not a patch", "path: /etc/passwd", `[{op: add, path: /spec/a, value: &a [*a]}]`,
	} {
		hr := &helmv2.HelmRelease{}
		hr.Name, hr.Namespace = "app", "apps"
		hr.Spec.PostRenderers = []helmv2.PostRenderer{{Kustomize: &helmv2.Kustomize{Patches: []kustomize.Patch{{Target: &kustomize.Selector{Kind: "Deployment"}, Patch: patch}}}}}
		if out, err := PostRender(t.Context(), Release{HelmRelease: hr, CRDs: [][]byte{[]byte(helmCRD)}, Manifests: []byte(helmOutput)}); err == nil {
			t.Errorf("%s is accepted:\n%s", patch, out.Objects)
		}
	}
	hr := &helmv2.HelmRelease{}
	if _, err := PostRender(t.Context(), Release{HelmRelease: hr, Manifests: []byte("---\n# Source: app/templates/a.yaml\nkind: [\n")}); err == nil {
		t.Error("what is no YAML is accepted")
	}
	if out, err := PostRender(t.Context(), Release{HelmRelease: hr, Manifests: []byte("---\n# Source: app/templates/a.yaml\n")}); err != nil || len(out.Objects) > 0 {
		t.Errorf("an empty document: %q, %v", out, err)
	}
}

// TestRenderedTooMuch refuses manifests that need far more work than their length suggests, before they are decoded.
func TestRenderedTooMuch(t *testing.T) {
	const head = "---\n# Source: app/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	var objects, keys strings.Builder
	for i := range maxDocuments + 1 {
		fmt.Fprintf(&objects, "---\n# Source: app/templates/a.yaml\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a%d}}\n", i)
	}
	for i := range 100_000 {
		fmt.Fprintf(&keys, "  k%d: v\n", i)
	}
	bomb := "data:\n  k0: &k0 [x, x]\n"
	for i := range 30 {
		bomb += fmt.Sprintf("  k%d: &k%d [*k%d, *k%d]\n", i+1, i+1, i, i)
	}
	const loop = "data: &a {b: *a}\n"
	list := "data: [" + strings.Repeat("x,", bound.MaxValues) + "x]\n"
	for _, test := range []struct{ manifests, crd, want string }{
		{objects.String(), "", "more than 10000 objects"},
		{head + list, "", "too many values"},
		{head + "data:\n" + keys.String(), "", "the work for what it reads"},
		{head + "data: &a\n" + keys.String(), "", "the work for what it reads"},
		{head + loop + head, "", "anchor \"a\" contains itself"},
		{head + bomb + head, "", "app/templates/a.yaml:"},
		{head, helmCRD + loop, "anchor \"a\" contains itself"},
		{head, helmCRD + bomb, "CRDs:"},
		{head, helmCRD + list, "CRDs: too many values"},
		{head, helmCRD + "data: &a\n" + keys.String(), "CRDs: what helm rendered: the kustomize build was given up"},
	} {
		hr := &helmv2.HelmRelease{}
		hr.Name, hr.Namespace = "a", "apps"
		_, err := PostRender(t.Context(), Release{HelmRelease: hr, CRDs: [][]byte{[]byte(test.crd)}, Manifests: []byte(test.manifests)})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.200v, want %q", err, test.want)
		}
		if _, err := InNamespace([]byte(test.manifests), "apps"); err == nil && strings.HasPrefix(test.want, "more") {
			t.Errorf("the operator's release is not refused: %q", test.want)
		}
	}
}

// TestInNamespace changes only the namespace of objects that the Helm Operator installs.
func TestInNamespace(t *testing.T) {
	const manifests = `---
# Source: app/templates/a.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
data: {date: 2024-01-02, yes: y, on: "on"}
---
# Source: app/templates/role.yaml
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: a
---
# Source: app/templates/empty.yaml
# nothing
---
# Source: app/templates/hook.yaml
apiVersion: batch/v1
kind: Job
metadata:
  generateName: a-
  namespace: other
  annotations:
    helm.sh/hook: pre-install
`
	const want = `---
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  namespace: apps
data: {date: 2024-01-02, yes: y, on: "on"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: a
---
apiVersion: batch/v1
kind: Job
metadata:
  generateName: a-
  namespace: other
  annotations:
    helm.sh/hook: pre-install
`
	if got, err := InNamespace([]byte(manifests), "apps"); err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
}

// TestInstallOrder compares the order of kinds with that of Helm 3, to which Helm 4 adds two kinds at the end.
func TestInstallOrder(t *testing.T) {
	helm3 := releaseutil.InstallOrder
	if len(installOrder) != len(helm3)+2 || !slices.Equal(installOrder[:len(helm3)], helm3) {
		t.Errorf("%q", helm3)
	}
}
