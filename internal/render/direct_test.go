package render

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

func repositoryOf(t *testing.T, root string) *repository {
	t.Helper()
	return &repository{ctx: t.Context(), root: root, display: func(p string) string { return p }, dirs: map[string]*directory{}, parsed: map[string]*manifest.File{}, plugins: map[string][]byte{}, guard: newGuard(func(error) {})}
}

// TestDirectly has kustomizations built with kustomize and without it. Both give the same objects, in the same order and
// from the same files; what kustomize would refuse, or do more with, is left to it.
func TestDirectly(t *testing.T) {
	config := func(name, more string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n" + more
	}
	for name, test := range map[string]struct {
		files map[string]string
		ok    bool
	}{
		"files and directories": {map[string]string{
			"k/kustomization.yaml":    "resources: [b.yaml, ../base, a.yaml, sub]\n",
			"k/a.yaml":                config("a", "data: {x: yes, o: 0o7, f: 1.10, n: 9007199254740993, t: 2020-01-01}\n"),
			"k/b.yaml":                "# a comment\n---\n" + config("b", "") + "---\n---\n" + config("c", "data: &d {k: v}\nbinaryData: *d\n"),
			"k/sub/kustomization.yml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [l.yaml]\n",
			"k/sub/l.yaml":            "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: l1}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: l2, namespace: x}}\n",
			"base/kustomization.yaml": "resources: [d.json]\n", "base/d.json": `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "eA=="}}`,
		}, true},
		"namespaces and versions tell objects apart": {map[string]string{
			"k/kustomization.yaml": "resources: [a.yaml]\n",
			"k/a.yaml":             config("a", "") + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n---\napiVersion: v2\nkind: ConfigMap\nmetadata: {name: a}\n",
		}, true},
		"the same object twice": {map[string]string{"k/kustomization.yaml": "resources: [a.yaml, b.yaml]\n", "k/a.yaml": config("a", ""), "k/b.yaml": config("a", "")}, false},
		"the default namespace": {map[string]string{"k/kustomization.yaml": "resources: [a.yaml]\n", "k/a.yaml": config("a", "") + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n"}, false},
		"a namespace": {map[string]string{
			"k/kustomization.yaml":    "resources: [a.yaml, ../base]\nnamespace: x\n",
			"k/a.yaml":                config("a", "") + "---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a, namespace: other}\nspec: {chartRef: {kind: OCIRepository, name: a, namespace: other}}\n",
			"base/kustomization.yaml": "resources: [b.yaml]\nnamespace: z\n", "base/b.yaml": config("b", ""),
		}, true},
		"a namespace in a base": {map[string]string{
			"k/kustomization.yaml": "resources: [a.yaml, ../base]\n", "k/a.yaml": config("a", ""),
			"base/kustomization.yaml": "resources: [a.yaml]\nnamespace: z\n", "base/a.yaml": config("a", ""),
		}, true},
		"a namespace that makes two objects one":  {map[string]string{"k/kustomization.yaml": "resources: [a.yaml]\nnamespace: x\n", "k/a.yaml": config("a", "") + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n"}, false},
		"a namespace for what may be referred to": {map[string]string{"k/kustomization.yaml": "resources: [a.yaml]\nnamespace: x\n", "k/a.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n"}, false},
		"a namespace for a Namespace":             {map[string]string{"k/kustomization.yaml": "resources: [a.yaml]\nnamespace: x\n", "k/a.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n"}, false},
		"a base with a generator":                 {map[string]string{"k/kustomization.yaml": "resources: [base]\n", "k/base/kustomization.yaml": "configMapGenerator: [{name: a, literals: [a=b]}]\n"}, false},
		"what stays local":                        {map[string]string{"k/kustomization.yaml": "resources: [a.yaml]\n", "k/a.yaml": config("a", "") + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, annotations: {config.kubernetes.io/local-config: \"true\"}}\n"}, false},
		"an object without a name":                {map[string]string{"k/kustomization.yaml": "resources: [a.yaml]\n", "k/a.yaml": "apiVersion: v1\nkind: ConfigMap\n"}, false},
		"no YAML":                                 {map[string]string{"k/kustomization.yaml": "resources: [a.yaml]\n", "k/a.yaml": "a: [\n"}, false},
		"a component in place of base":            {map[string]string{"k/kustomization.yaml": "resources: [base]\n", "k/base/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [a.yaml]\n", "k/base/a.yaml": config("a", "")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := absolute(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			write(t, root, test.files)
			r := repositoryOf(t, root)
			dir := join(root, "k")
			d := r.directory(dir)
			if d == nil || d.err != nil {
				t.Fatalf("%+v", d)
			}
			found, ok := r.directly(r.fileSystem(t.Context(), nil), dir, d.kustomization)
			if ok != test.ok {
				t.Fatalf("directly: %v, want %v", ok, test.ok)
			}
			if !ok {
				return
			}
			got, err := decoded(r.fileSystem(t.Context(), nil), found, "k")
			if err != nil {
				t.Fatal(err)
			}
			k, err := clone(d.kustomization)
			if err != nil {
				t.Fatal(err)
			}
			k.GeneratorOptions = &types.GeneratorOptions{} // without effect, but kustomize builds it
			want, err := r.build(t.Context(), dir, d.file, k, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("directly:\n%v\nbuilt:\n%v", got, want)
			}
		})
	}
}

// TestDirectlyAtRandom builds random trees both ways: what is built without kustomize is what kustomize makes of it.
func TestDirectlyAtRandom(t *testing.T) {
	const trees = 250
	direct, errs := 0, 0
	for seed := range uint64(trees) {
		root, err := absolute(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		files := randomTree(rand.New(rand.NewPCG(seed, 1)))
		write(t, root, files)
		dir := join(root, "k")
		r := repositoryOf(t, root)
		d := r.directory(dir)
		if d == nil || d.err != nil || d.unknown != nil {
			continue
		}
		found, ok := r.directly(r.fileSystem(t.Context(), nil), dir, d.kustomization)
		k, err := clone(d.kustomization)
		if err != nil {
			t.Fatal(err)
		}
		k.GeneratorOptions = &types.GeneratorOptions{} // without effect, but kustomize builds it
		want, err := r.build(t.Context(), dir, d.file, k, nil)
		if err != nil {
			errs++
		}
		if !ok {
			continue
		}
		direct++
		got, decodeErr := decoded(r.fileSystem(t.Context(), nil), found, "k")
		if err != nil && decodeErr != nil {
			continue
		}
		if err != nil || decodeErr != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("seed %d:\n%v\ndirectly:\n%v, %v\nbuilt:\n%v, %v", seed, files, got, decodeErr, want, err)
		}
	}
	if direct < trees/10 || errs < trees/20 || direct+errs > trees {
		t.Errorf("%d trees were built directly, and %d not at all: they show too little", direct, errs)
	}
}

// randomTree is a kustomization k with up to three bases. Most of it is as people write it.
func randomTree(random *rand.Rand) map[string]string {
	oneOf := func(list ...string) string { return list[random.IntN(len(list))] }
	seldom := func(list ...string) string {
		if random.IntN(12) > 0 {
			return ""
		}
		return oneOf(list...)
	}
	object := func() string {
		return "apiVersion: " + oneOf("v1", "v1", "source.toolkit.fluxcd.io/v1", "helm.toolkit.fluxcd.io/v2", "apps/v1", `"v1"`) +
			"\nkind: " + oneOf("ConfigMap", "ConfigMap", "Secret", "HelmRelease", "HelmRepository", "Namespace", "Deployment", "ServiceAccount", seldom("List", "FooList", "", "true")) +
			"\nmetadata:\n  name: " + oneOf("a", "b", "c", "d", "e", "'f'", seldom("1", "", "yes", "1.5")) + "\n" +
			seldom("  namespace: x\n", "  namespace: default\n", "  namespace: ''\n", "  namespace: 1\n", "  namespace:\n") +
			seldom("  labels: {a: b}\n", "  labels: {a: yes}\n", "  labels: {}\n", "  labels:\n", "  annotations: {a: 'true'}\n", "  annotations: {a: 1}\n", "  annotations: {}\n",
				"  annotations: {config.kubernetes.io/local-config: 'false'}\n", "  annotations: {internal.config.kubernetes.io/index: '1'}\n", "  annotations: {config.kubernetes.io/origin: 'a'}\n", "  annotations: {kustomize.config.k8s.io/behavior: merge}\n") +
			seldom("data: {a: yes, b: 1.50, c: 0o7, d: 010, e: ~, f: 2001-01-01, g: 'x', h: 9007199254740993, i: 12, j: true}\n", "spec: {a: [1, ~]}\n", "spec: &a {b: c}\nstatus: *a\n", "spec: {a: {b: ~}}\n",
				"spec:\n  values:\n    a: |\n      b\n       c\n\n    d: >-\n      e\n      f\n", "items: []\n", "spec: {1: a, true: b}\n", "spec: {a: b, a: c}\n", "spec: {<<: {a: b}}\n", "spec: !!map {a: b}\n", "spec: \"\\u00e9\\n\"\n")
	}
	file := func() string {
		text := seldom("---\n", "# a comment\n", "\uFEFF", "%YAML 1.1\n---\n", "# a\n---\n", "---\n---\n")
		for i := range 1 + random.IntN(2) {
			if i > 0 {
				text += oneOf("---\n", "---\n", "---\n", seldom("--- # a\n", "---\n---\n", "...\n---\n", "---\n# a\n---\n", "---   \n", "---\n"), "---\n")
			}
			text += object()
		}
		if random.IntN(30) == 0 {
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		return text + seldom("---\n", "---", "# a\n", "\t\n", "\n\n")
	}
	files := map[string]string{}
	for i, dir := range []string{"k", "k/sub", "base", "other"} {
		names := ""
		for j := range 1 + random.IntN(2) {
			name := fmt.Sprintf("f%d.yaml", j)
			files[dir+"/"+name] = file()
			names += "- " + name + "\n"
		}
		if i == 0 {
			for _, base := range []string{"sub", "../base", "../other", "./sub/../sub"} {
				if random.IntN(4) == 0 {
					names += "- " + base + "\n"
				}
			}
		}
		files[dir+"/kustomization.yaml"] = seldom("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n", "kind: Kustomization\n", "---\n", "# a\n") +
			oneOf("", "", "namespace: x\n", seldom("namespace: y\n", "namespace: ''\n", "namespace: default\n", "commonLabels: {a: b}\n", "Namespace: z\n", "unknown: a\n", "metadata: {name: a}\n")) + "resources:\n" + names
	}
	return files
}
