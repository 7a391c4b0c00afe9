package render

import (
	"reflect"
	"testing"

	"sigs.k8s.io/kustomize/api/types"
)

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
			r := &repository{ctx: t.Context(), root: root, display: func(p string) string { return p }, dirs: map[string]*directory{}, plugins: map[string][]byte{}, guard: newGuard(func(error) {})}
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
