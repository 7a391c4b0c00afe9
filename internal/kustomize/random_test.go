package kustomize

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
)

// TestAtRandom builds random trees and overlays, and compares the result with kustomize's.
func TestAtRandom(t *testing.T) {
	const trees = 60
	failed := 0
	for seed := range uint64(trees) {
		for _, files := range []map[string]string{randomTree(rand.New(rand.NewPCG(seed, 1))), randomOverlay(rand.New(rand.NewPCG(seed, 2)))} {
			if same(t, textsOf(files)) != nil {
				failed++
			}
			if t.Failed() {
				t.Fatalf("seed %d:\n%s", seed, textsOf(files))
			}
		}
	}
	if failed < trees/20 || failed > trees*3/2 {
		t.Errorf("%d of %d trees are refused: they show too little", failed, 2*trees)
	}
}

// TestLinear builds twice as many objects with about twice as many allocations: objects are not compared with all other objects.
func TestLinear(t *testing.T) {
	for name, fields := range map[string]string{
		"namespace":  "namespace: apps\n",
		"prefix":     "namePrefix: a-\nnameSuffix: -b\n",
		"a patch":    "patches:\n- target: {kind: ConfigMap}\n  patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {c: d}}'\n",
		"operations": "patches:\n- target: {kind: ConfigMap}\n  patch: '[{\"op\": \"add\", \"path\": \"/data/c\", \"value\": \"d\"}]'\n",
		"labels":     "commonLabels: {a: b}\ncommonAnnotations: {c: d}\n",
		"all":        "namespace: apps\nnamePrefix: a-\nimages: [{name: a, newTag: b}]\nsortOptions: {order: legacy}\n",
	} {
		t.Run(name, func(t *testing.T) {
			count := func(n int) float64 {
				files := map[string]string{}
				var k strings.Builder
				k.WriteString(fields + "resources:\n- n.yaml\n")
				files["k/n.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata: {name: apps}\n"
				for i := range n {
					fmt.Fprintf(&k, "- a%d.yaml\n", i)
					files[fmt.Sprintf("k/a%d.yaml", i)] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%[1]d}\ndata: {a: b}\n---\n"+
						"apiVersion: v1\nkind: Pod\nmetadata: {name: a%[1]d}\nspec: {containers: [{name: a, image: a, envFrom: [{configMapRef: {name: a%[1]d}}]}]}\n", i)
				}
				files["k/kustomization.yaml"] = k.String()
				texts := onDisk{textsOf(files)}
				return testing.AllocsPerRun(1, func() {
					k, file, err := texts.Kustomization("/k")
					if err != nil {
						t.Fatal(err)
					}
					b := &Build{Source: texts, Budget: NewBudget(func(error) {}), What: "k"}
					if objects, err := b.Run(t.Context(), "/k", file, k); err != nil || len(objects) != 2*n+1 {
						t.Fatal(len(objects), err)
					}
				})
			}
			if few, many := count(200), count(400); many > 2.3*few {
				t.Errorf("%.0f allocations for 200 files, %.0f for 400", few, many)
			}
		})
	}
}

// TestManyPatches applies twice as many patches to an object with about twice as much memory: the memory of a patch does not
// depend on the number of earlier ones.
func TestManyPatches(t *testing.T) {
	allocated := func(n int) uint64 {
		texts := textsOf(map[string]string{
			"k/a.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n",
			"k/kustomization.yaml": "resources: [a.yaml]\npatches:\n" + strings.Repeat("- {target: {kind: ConfigMap}, patch: '- {op: replace, path: /data/a, value: c}'}\n", n),
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if objects, _, err := built(t, texts); err != nil || len(objects) != 1 {
			t.Fatal(objects, err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := allocated(300), allocated(600); many > few*23/10 {
		t.Errorf("%d bytes for 300 patches, %d for 600", few, many)
	}
}

// onDisk is a source that knows its only directory.
type onDisk struct{ Texts }

func (t onDisk) Directory(path string) (string, error) {
	if path != "/k" {
		return "", fmt.Errorf("%s: not a directory", path)
	}
	return path, nil
}

// randomTree returns a kustomization k with up to three bases. Most of it is realistic.
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

// randomOverlay returns a kustomization k that patches a base, which may itself patch a base.
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

// merged returns a strategic merge patch.
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

// operations returns a JSON patch.
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
