package render

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/types"
)

// bothWays builds the directory k of a tree without kustomize and with it. It reports whether the first way was taken, and fails
// the test where what comes out is not the same.
func bothWays(t *testing.T, files map[string]string) (direct bool, failed error) {
	t.Helper()
	root, err := absolute(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, root, files)
	dir := join(root, "k")
	r := repositoryOf(t, root)
	d := r.directory(dir)
	if d == nil || d.err != nil || d.unknown != nil {
		t.Fatalf("%v\n%+v", files, d)
	}
	k, err := clone(d.kustomization)
	if err != nil {
		t.Fatal(err)
	}
	k.GeneratorOptions = &types.GeneratorOptions{} // without effect, but kustomize builds it
	want, failed := r.build(t.Context(), dir, d.file, k, nil)
	for again := range 3 { // what is kept of a file is another's copy
		found, ok := r.directly(r.fileSystem(t.Context(), nil), dir, d.kustomization)
		if again > 0 && ok != direct {
			t.Errorf("%v\nbuilt without kustomize: %v, again: %v", files, direct, ok)
		}
		if direct = ok; !ok {
			return false, failed
		}
		got, err := decoded(r.fileSystem(t.Context(), nil), found, "k")
		if failed != nil || err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v\ndirectly:\n%v, %v\nbuilt:\n%v, %v", files, got, err, want, failed)
		}
	}
	return direct, failed
}

const patchedBase = `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: a, labels: {app: a}}
spec: {interval: 1h, chartRef: {kind: OCIRepository, name: a}, values: {x: 1, list: [a, b], 'yes': "on"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {a: b}
`

// TestPatched holds that patches do what they do in kustomize, and which are left to it.
func TestPatched(t *testing.T) {
	release := "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a}\n"
	overlay := func(kustomization string, more ...string) map[string]string {
		files := map[string]string{
			"k/kustomization.yaml": "resources: [../base]\n" + kustomization, "base/kustomization.yaml": "namespace: x\nresources: [a.yaml]\n", "base/a.yaml": patchedBase,
		}
		for i := 0; i < len(more); i += 2 {
			files[more[i]] = more[i+1]
		}
		return files
	}
	for name, test := range map[string]struct {
		files map[string]string
		ok    bool
	}{
		"a file":                        {overlay("patches: [{path: p.yaml}]\n", "k/p.yaml", release+"spec: {values: {x: ~, list: [c], y: {z: 'no'}}}\n"), true},
		"in place":                      {overlay("patches:\n- patch: |\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: a}\n    data: {c: d}\n"), true},
		"two documents":                 {overlay("patches: [{path: p.yaml}]\n", "k/p.yaml", release+"spec: {interval: 2h}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {a: b}}\n"), true},
		"by the namespace it had":       {overlay("patches: [{path: p.yaml}]\nnamespace: v\n", "k/p.yaml", strings.Replace(release, "{name: a}", "{name: a, namespace: default}", 1)+"spec: {interval: 2h}\n"), true},
		"by the namespace it has":       {overlay("patches: [{path: p.yaml}]\nnamespace: v\n", "k/p.yaml", strings.Replace(release, "{name: a}", "{name: a, namespace: x}", 1)+"spec: {interval: 2h}\n"), true},
		"by the namespace it will have": {overlay("patches: [{path: p.yaml}]\nnamespace: v\n", "k/p.yaml", strings.Replace(release, "{name: a}", "{name: a, namespace: v}", 1)+"spec: {interval: 2h}\n"), false},
		"of another object":             {overlay("patches: [{path: p.yaml}]\n", "k/p.yaml", strings.Replace(release, "name: a", "name: b", 1)), false},
		"with a target":                 {overlay("patches: [{path: p.yaml, target: {kind: Helm.*}}]\n", "k/p.yaml", strings.Replace(release, "name: a", "name: any", 1)+"spec: {suspend: true}\n"), true},
		"with a target that is nowhere": {overlay("patches: [{path: p.yaml, target: {kind: Deployment}}]\n", "k/p.yaml", release+"spec: {suspend: true}\n"), true},
		"with labels":                   {overlay("patches: [{path: p.yaml, target: {labelSelector: app=a}}]\n", "k/p.yaml", strings.Replace(release, "{name: a}", "{name: a, annotations: {b: c}}", 1)), true},
		"JSON":                          {overlay("patches:\n- target: {kind: HelmRelease}\n  patch: |\n    - {op: replace, path: /spec/interval, value: 5m}\n    - {op: add, path: /metadata/annotations/a.b~1c, value: d}\n    - {op: copy, from: /spec/values, path: /spec/values/copy}\n"), true},
		"JSON that tests":               {overlay("patches:\n- target: {kind: HelmRelease}\n  patch: '[{\"op\": \"test\", \"path\": \"/spec/interval\", \"value\": \"5m\"}]'\n"), false},
		"JSON that fits nothing":        {overlay("patches:\n- target: {kind: Deployment}\n  patch: '[{\"op\": \"remove\", \"path\": \"/spec/nothing\"}]'\n"), true},
		"JSON without a target":         {overlay("patches:\n- patch: '[{\"op\": \"remove\", \"path\": \"/spec/interval\"}]'\n"), false},
		"JSON that renames":             {overlay("patches:\n- target: {kind: HelmRelease}\n  patch: '[{\"op\": \"replace\", \"path\": \"/metadata/name\", \"value\": \"b\"}]'\n"), false},
		"JSON that takes notes away":    {overlay("patches:\n- target: {kind: HelmRelease}\n  patch: '[{\"op\": \"remove\", \"path\": \"/metadata/annotations\"}]'\n"), false},
		"no annotations":                {overlay("patches: [{path: p.yaml}]\n", "k/p.yaml", strings.Replace(release, "{name: a}", "{name: a, annotations: ~}", 1)), false},
		"an annotation that drops it":   {overlay("patches: [{path: p.yaml}]\n", "k/p.yaml", strings.Replace(release, "{name: a}", "{name: a, annotations: {config.kubernetes.io/local-config: 'true'}}", 1)), false},
		"a deletion":                    {overlay("patches: [{path: p.yaml}]\n", "k/p.yaml", release+"$patch: delete\n"), true},
		"nothing left":                  {overlay("patches: [{path: p.yaml, target: {name: a}}]\n", "k/p.yaml", release+"$patch: delete\n"), false},
		"another name":                  {overlay("patches: [{path: p.yaml, options: {allowNameChange: true}, target: {kind: HelmRelease}}]\n", "k/p.yaml", strings.Replace(release, "name: a", "name: b", 1)), false},
		"nothing":                       {overlay("patches: [{path: p.yaml}]\n", "k/p.yaml", "# nothing\n"), true},
		"no YAML":                       {overlay("patches: [{path: p.yaml}]\n", "k/p.yaml", "a: [\n"), false},
		"one on another": {overlay("patches: [{path: p.yaml}]\nnamespace: z\n", "k/p.yaml", release+"spec: {values: {y: 3}}\n",
			"base/kustomization.yaml", "resources: [../root]\nnamespace: x\npatches: [{path: p.yaml}, {target: {name: a}, patch: '[{\"op\": \"add\", \"path\": \"/metadata/labels\", \"value\": {\"z\": \"w\"}}]'}]\n", "base/p.yaml", release+"spec: {values: {y: 2, list: ~}}\n",
			"root/kustomization.yaml", "resources: [a.yaml]\nnamespace: w\n", "root/a.yaml", patchedBase), true},
		"merged lists": {overlay("patches: [{path: p.yaml}]\n", "base/kustomization.yaml", "resources: [a.yaml]\n", "base/a.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{name: a, image: b, env: [{name: A, value: '1'}]}, {name: c, image: d}]}}}\n",
			"k/p.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{name: c, $patch: delete}, {name: a, env: [{name: B, value: '2'}]}, {name: e, image: f}]}}}\n"), true},
	} {
		t.Run(name, func(t *testing.T) {
			if ok, err := bothWays(t, test.files); ok != test.ok {
				t.Errorf("built without kustomize: %v, want %v (%v)", ok, test.ok, err)
			}
		})
	}
}

// TestPatchedAtRandom builds random overlays both ways.
func TestPatchedAtRandom(t *testing.T) {
	const trees = 200
	direct, failed := 0, 0
	for seed := range uint64(trees) {
		ok, err := bothWays(t, randomOverlay(rand.New(rand.NewPCG(seed, 2))))
		if ok {
			direct++
		}
		if err != nil {
			failed++
		}
	}
	if direct < trees/4 || failed < trees/20 {
		t.Errorf("of %d trees, %d were built without kustomize, and %d not at all: they show too little", trees, direct, failed)
	}
}

// randomOverlay is a kustomization k that patches a base, which may patch one of its own.
func randomOverlay(random *rand.Rand) map[string]string {
	g := &overlayGenerator{random}
	files := map[string]string{}
	files["root/kustomization.yaml"] = g.choose("", "namespace: x\n", "namespace: v\n") + "resources: [" + g.choose("a.yaml", "a.yaml, b.yaml", "b.yaml, a.yaml") + "]\n"
	files["root/a.yaml"] = g.object("HelmRelease", "a") + "---\n" + g.object("ConfigMap", "b")
	files["root/b.yaml"] = g.object(g.choose("HelmRelease", "HelmRelease", "Secret", "Deployment", g.seldom("ConfigMap")+"HelmRelease"), "c")
	if random.IntN(3) == 0 {
		files["root/kustomization.yaml"] = "resources: [a.yaml, b.yaml]\n"
		files["root/b.yaml"] = g.object("Deployment", "c")
	}
	files["base/kustomization.yaml"] = "resources: [../root]\n" + g.seldom("namespace: v\n")
	if random.IntN(4) == 0 {
		g.patches(files, "base")
	}
	files["k/kustomization.yaml"] = "resources: [../base" + g.choose("", "", "", ", own.yaml") + "]\n" + g.seldom("namespace: x\n", "namespace: z\n")
	files["k/own.yaml"] = g.object("ConfigMap", "d")
	g.patches(files, "k")
	return files
}

type overlayGenerator struct{ random *rand.Rand }

func (g *overlayGenerator) choose(list ...string) string { return list[g.random.IntN(len(list))] }

func (g *overlayGenerator) seldom(list ...string) string {
	if g.random.IntN(8) > 0 {
		return ""
	}
	return g.choose(list...)
}

func (g *overlayGenerator) head(kind, name string) string {
	api := map[string]string{"HelmRelease": "helm.toolkit.fluxcd.io/v2", "ConfigMap": "v1", "Secret": "v1", "Deployment": "apps/v1"}[kind]
	return "apiVersion: " + api + "\nkind: " + kind + "\nmetadata:\n  name: " + name + "\n"
}

func (g *overlayGenerator) scalar() string {
	return g.choose("a", "'yes'", "\"1\"", "1", "true", "10m", "'~'", "x y", "0.5", "'0x1f'", "|-\n      a\n      b", "\"\\u00e9\"", "'a'", "# c\n      d", "-3", "1.50", "'no' # c", "''")
}

func (g *overlayGenerator) object(kind, name string) string {
	text := g.head(kind, name) + g.seldom("  namespace: x\n", "  namespace: default\n") + g.choose("", "  labels: {app: a}\n", "  labels: {app: b, tier: 'true'}\n") + g.choose("", "", "  annotations: {a: b}\n", "  annotations: {c: 'on'}\n")
	switch kind {
	case "Deployment":
		return text + "spec:\n  replicas: 1\n  template:\n    spec:\n      containers:\n      - name: a\n        image: b:1\n        env:\n        - {name: A, value: '1'}\n        - {name: B, valueFrom: {configMapKeyRef: {name: b, key: k}}}\n        ports: [{containerPort: 80}, {containerPort: 81, protocol: UDP}]\n      - {name: c, image: d}\n"
	case "HelmRelease":
		return text + "spec:\n  interval: 1h\n  values:\n    x: " + g.scalar() + "\n    y: " + g.scalar() + "\n    list: [a, {b: c}]\n" + g.seldom("    n: ~\n", "    m: {}\n    l: []\n", "    s: &s {t: u}\n    v: *s\n")
	}
	return text + "data:\n  x: " + g.choose("a", "'yes'", "\"1\"") + "\n  y: |\n    a\n    b\n"
}

// patches adds patches to a kustomization, some in files.
func (g *overlayGenerator) patches(files map[string]string, dir string) {
	list := ""
	for i := range 1 + g.random.IntN(3) {
		text, target := g.merged(), ""
		if g.random.IntN(3) > 0 {
			target = g.choose("{kind: HelmRelease}", "{kind: HelmRelease}", "{name: a}", "{name: '[ac]', kind: HelmRelease}", "{kind: ConfigMap, name: b}", "{kind: HelmRelease, namespace: x}", "{kind: Helm.*, namespace: default}", "{kind: HelmRelease, labelSelector: app=a}", "{group: helm.*, annotationSelector: a=b}", "{kind: Nothing}", "{group: helm.*, version: v2}", "{}", "{name: a}")
			if g.random.IntN(2) == 0 {
				text = g.operations()
			}
		}
		if target != "" {
			target = "  target: " + target + "\n"
		}
		if g.random.IntN(2) == 0 {
			file := fmt.Sprintf("p%d.yaml", i)
			files[dir+"/"+file] = g.seldom("# c\n", "---\n", "\n") + text
			list += "- path: " + file + "\n" + target
		} else {
			list += "- patch: |\n    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n" + target
		}
		list += g.seldom("  options: {allowNameChange: true}\n", "  options: {allowKindChange: true}\n")
	}
	files[dir+"/kustomization.yaml"] += "patches:\n" + list
}

// merged is a strategic merge patch.
func (g *overlayGenerator) merged() string {
	kind, name := "HelmRelease", "a"
	switch g.random.IntN(8) {
	case 0:
		kind, name = "ConfigMap", g.choose("b", "b", "d")
	case 1, 2:
		kind, name = "Deployment", "c"
	case 3:
		name = g.choose("a", "c")
	}
	text := g.head(kind, name) + g.seldom("  namespace: x\n", "  namespace: v\n", "  namespace: default\n", "  namespace: z\n") +
		g.seldom("  labels: {app: ~, new: 'on'}\n", "  labels: ~\n", "  labels: {a: b}\n", "  labels: {a: 1}\n", "  labels: {$patch: replace, a: b}\n") +
		g.seldom("  annotations: {a: ~}\n", "  annotations: {a: c}\n", "  annotations: ~\n", "  annotations: {}\n", "  annotations: {$patch: replace, a: d}\n", "  annotations: {config.kubernetes.io/local-config: 'true'}\n", "  annotations: {a: true}\n")
	if g.random.IntN(12) == 0 {
		return text + "$patch: " + g.choose("delete", "replace", "merge") + "\n"
	}
	switch kind {
	case "Deployment":
		return text + "spec:\n  replicas: " + g.choose("2", "~", "'3'") + "\n  template:\n    spec:\n      containers:\n" +
			g.choose("      - {name: c, $patch: delete}\n", "      - {name: e, image: f}\n", "      - name: a\n        env: [{name: C, value: 'no'}, {name: A, value: '5'}]\n", "      - name: a\n        ports: [{containerPort: 80, name: web}]\n", "      - $patch: replace\n      - {name: g, image: h}\n", "      - {image: b}\n")
	case "HelmRelease":
		return text + "spec:\n" + g.seldom("  interval: ~\n", "  interval: 5m\n") + "  values:\n    x: " + g.choose("~", g.scalar(), g.seldom("{}", "[]")+g.seldom("# c"), g.scalar(), g.scalar(), g.scalar()) + "\n    new: " + g.scalar() + "\n" +
			g.seldom("    list: ~\n", "    list: [z]\n", "    $patch: replace\n", "    y: {a: {b: ~}}\n", "    n: {a: ~}\n", "    l: [~]\n", "    m: &m {n: 1}\n    o: *m\n") + g.seldom("", "---\n"+g.merged())
	}
	return text + "data:\n  x: " + g.choose("~", "b", "'no'") + "\n" + g.seldom("---\n"+g.merged())
}

// operations is a JSON patch.
func (g *overlayGenerator) operations() string {
	var list []string
	for range 1 + g.random.IntN(3) {
		list = append(list, g.choose(
			"{op: add, path: /spec/values/new, value: [1, {a: 'yes'}]}", "{op: replace, path: /spec/interval, value: 5m}", "{op: add, path: /spec/suspend, value: true}", "{op: add, path: /metadata/annotations/b, value: c}",
			"{op: add, path: /metadata/labels, value: {a: b}}", "{op: add, path: /spec/interval, value: 1}",
			g.seldom("{op: remove, path: /spec/values/list}", "{op: add, path: /data/z, value: 'on'}", "{op: remove, path: /nothing}", "{op: test, path: /spec/interval, value: 1h}", "{op: copy, from: /spec, path: /status}", "{op: move, from: /spec/values, path: /spec/moved}",
				"{op: replace, path: /metadata/name, value: z}", "{op: add, path: /metadata/namespace, value: w}", "{op: replace, path: /kind, value: Secret}", "{op: remove, path: /metadata/annotations}", "{op: add, path: /metadata/annotations, value: {q: r}}",
				"{op: add, path: '', value: {}}", "{op: add, path: /metadata/labels/a, value: true}", "{op: bad, path: /a}", "{op: add, path: /spec/values/list/-, value: {a: ~}}"),
			"{op: add, path: /spec/x, value: 1.50}"))
	}
	var kept []string
	for _, op := range list {
		if op != "" {
			kept = append(kept, op)
		}
	}
	switch g.random.IntN(10) {
	case 0:
		return "[" + strings.Join(kept, ", ") + "]\n" // which is no JSON
	case 1:
		return `[{"op": "add", "path": "/spec/new", "value": {"a": ["yes", null, 1.0, 1e3]}}]`
	}
	text := ""
	for _, op := range kept {
		text += "- " + op + "\n"
	}
	return text + g.seldom("# end\n")
}

// TestKeptNodes holds that a base is parsed for its first two overlays only, and that what is kept is bounded.
func TestKeptNodes(t *testing.T) {
	root, err := absolute(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	large := "  large: '" + strings.Repeat("a", maxKeptNodes) + "'\n"
	files := map[string]string{
		"base/kustomization.yaml": "resources: [a.yaml, large.yaml]\n", "base/a.yaml": patchedBase,
		"base/large.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\ndata:\n" + large,
	}
	overlays := []string{"a", "b", "c"}
	for _, name := range overlays {
		files[name+"/kustomization.yaml"] = "resources: [../base]\npatches: [{target: {kind: HelmRelease}, patch: '[{\"op\": \"add\", \"path\": \"/spec/values/x\", \"value\": \"" + name + "\"}]'}]\n"
	}
	write(t, root, files)
	r := repositoryOf(t, root)
	kept := -1
	for _, name := range overlays {
		dir := join(root, name)
		found, ok := r.directly(r.fileSystem(t.Context(), nil), dir, r.directory(dir).kustomization)
		if !ok {
			t.Fatalf("%s is not built without kustomize", name)
		}
		if got, err := decoded(r.fileSystem(t.Context(), nil), found, name); err != nil || !strings.Contains(fmt.Sprint(got[0].content["spec"]), "x:"+name) {
			t.Errorf("%s: %v, %v", name, got[0].content, err)
		}
		if name == "a" && len(r.nodes.kept) > 0 {
			t.Error("a file was kept that is read once")
		}
		kept = len(r.nodes.kept)
	}
	if _, ok := r.keptNodes(join(root, "base/a.yaml")); kept != 1 || !ok || r.nodes.size > maxKeptNodes {
		t.Errorf("%d files are kept, %d bytes", kept, r.nodes.size)
	}
}
