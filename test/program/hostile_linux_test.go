package program

import (
	"fmt"
	"strings"
)

// doubling returns kustomizations and Kustomizations that double their input, in many levels or over many objects.
func doubling() map[string]map[string]string {
	config := func(name, data string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: apps}\ndata: {" + data + "}\n"
	}
	flux := func(name, path, more string) string {
		return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + ", namespace: flux-system}\n" +
			"spec:\n  interval: 1h\n  prune: true\n  path: ./" + path + "\n  sourceRef: {kind: GitRepository, name: flux-system}\n" + more
	}
	substitutes := func(pairs ...string) string {
		text := "  postBuild:\n    substitute:\n"
		for i := 0; i < len(pairs); i += 2 {
			text += fmt.Sprintf("      %s: '%s'\n", pairs[i], pairs[i+1])
		}
		return text
	}
	huge := strings.Repeat("x", 60_000)

	chain := map[string]string{"k0.yaml": flux("k0", "p0", substitutes("A0", "xxxxxxxx"))}
	configs := map[string]string{"k0.yaml": flux("k0", "p0", substitutes("A0", "xxxxxxxx"))}
	for i := range 40 {
		next := fmt.Sprintf("p%d/k.yaml", i)
		a, b := fmt.Sprintf("A%d", i), fmt.Sprintf("A%d", i+1)
		chain[next] = flux(fmt.Sprintf("k%d", i+1), fmt.Sprintf("p%d", i+1), substitutes(b, "${"+a+"}${"+a+"}"))
		name := fmt.Sprintf("c%d", i)
		configs[next] = config(name, b+": '${"+a+"}${"+a+"}'")
		configs[next] = strings.ReplaceAll(configs[next], "apps", "flux-system") + "---\n" +
			flux(fmt.Sprintf("k%d", i+1), fmt.Sprintf("p%d", i+1), "  postBuild: {substituteFrom: [{kind: ConfigMap, name: "+name+"}]}\n")
	}
	chain["p40/a.yaml"], configs["p40/a.yaml"] = config("a", "a: x"), config("a", "a: x")

	var objects, nodes strings.Builder
	for i := range 400 {
		objects.WriteString(config(fmt.Sprintf("c%d", i), "a: '"+strings.Repeat("${A}", 100)+"'") + "---\n")
		nodes.WriteString(config(fmt.Sprintf("c%d", i), "a: ['"+strings.Repeat("${A}', '", 100)+"']") + "---\n")
	}
	lists := "[" + strings.Repeat("x,", 10_000) + "x]"
	many := map[string]string{"k.yaml": flux("k", "p", substitutes("A", huge)), "p/a.yaml": objects.String()}
	manyNodes := map[string]string{"k.yaml": flux("k", "p", substitutes("A", lists)), "p/a.yaml": nodes.String()}
	oneOfNodes := map[string]string{"k.yaml": flux("k", "p", substitutes("A", lists)), "p/a.yaml": config("a", "a: ['"+strings.Repeat("${A}', '", 1_500)+"']")}

	diamond := map[string]string{}
	for i := range 20 {
		for _, side := range []string{"a", "b"} {
			diamond[fmt.Sprintf("%s%d/kustomization.yaml", side, i)] = hostileHead + fmt.Sprintf("namePrefix: %s-\nresources: [../a%d, ../b%d]\n", side, i+1, i+1)
		}
	}
	for _, side := range []string{"a", "b"} {
		diamond[side+"20/kustomization.yaml"] = hostileHead + "namePrefix: " + side + "-\nresources: [a.yaml]\n"
		diamond[side+"20/a.yaml"] = config("a", "a: x")
	}
	// Few enough kustomizations, each with a large object.
	wide := map[string]string{}
	for i := range 9 {
		for _, side := range []string{"a", "b"} {
			wide[fmt.Sprintf("%s%d/kustomization.yaml", side, i)] = hostileHead + fmt.Sprintf("namePrefix: %s-\nresources: [../a%d, ../b%d]\n", side, i+1, i+1)
		}
	}
	for _, side := range []string{"a", "b"} {
		wide[side+"9/kustomization.yaml"] = hostileHead + "namePrefix: " + side + "-\nresources: [a.yaml]\n"
		wide[side+"9/a.yaml"] = config("a", "a: ["+strings.Repeat("x,", 20_000)+"]")
	}
	return map[string]map[string]string{
		"substitutes in a chain of Kustomizations": chain,
		"ConfigMaps in a chain of Kustomizations":  configs,
		"a long value in many objects":             many,
		"a value that is a list in many objects":   manyNodes,
		"a value that is a list in one object":     oneOfNodes,
		"bases that double":                        diamond,
		"bases that double a large object":         wide,
	}
}

// patterns returns kustomizations whose schemas and patterns take long to apply, or are large.
func patterns() map[string]map[string]string {
	widget := "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: a, namespace: apps}\nspec: {a: {b: x}}\n"
	change := "patches:\n- patch: |\n    apiVersion: example.org/v1\n    kind: Widget\n    metadata: {name: a, namespace: apps}\n    spec: {a: {b: y}}\n"
	schema := func(definitions string) map[string]string {
		of := `"x-kubernetes-group-version-kind": [{"group": "example.org", "version": "v1", "kind": "Widget"}]`
		return map[string]string{
			"kustomization.yaml": hostileHead + "resources: [w.yaml]\nopenapi: {path: s.json}\n" + change, "w.yaml": widget,
			"s.json": `{"definitions": {"w": {` + of + `, "type": "object", "properties": {"spec": ` + definitions + `}}}}`,
		}
	}
	deep := strings.Repeat(`{"properties": {"a": `, 20_000) + `{"type": "object"}` + strings.Repeat("}}", 20_000)
	wide := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"p%d": {"type":"string"},`, i)
		}
		return `{"properties": {` + b.String() + `"a": {"type": "object"}}}`
	}
	var configs, names strings.Builder
	long := strings.Repeat("a", 200)
	for i := range 500 {
		fmt.Fprintf(&configs, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s%d, namespace: apps}\ndata: {a: x}\n---\n", long, i)
	}
	for i := range 1000 {
		fmt.Fprintf(&names, "a{%d}|", i)
	}
	selects := strings.Repeat(fmt.Sprintf("- source: {kind: ConfigMap, name: '%s0', fieldPath: data.a}\n"+
		"  targets: [{select: {name: '(%sb)*b'}, fieldPaths: [data.b], options: {create: true}}]\n", long, &names), 20)
	return map[string]map[string]string{
		"a schema that refers to itself": schema(`{"$ref": "#/definitions/s"}}}, "s": {"$ref": "#/definitions/t"}, "t": {"$ref": "#/definitions/s", "default": {`),
		"a deep schema":                  schema(deep),
		"a large schema":                 schema(wide(300_000)),
		"a pattern that repeats itself": {"kustomization.yaml": hostileHead + "resources: [w.yaml]\npatches:\n" +
			"- target: {name: '((a{100}){100}){100}'}\n  patch: '[{\"op\": \"add\", \"path\": \"/spec/b\", \"value\": \"x\"}]'\n", "w.yaml": widget},
		"patterns over many kinds": {"kustomization.yaml": hostileHead + "resources: [a.yaml]\nreplacements:\n" + strings.ReplaceAll(selects, "select: {name:", "select: {kind:"),
			"a.yaml": strings.ReplaceAll(configs.String(), "apiVersion: v1\nkind: ConfigMap", "apiVersion: example.org/v1\nkind: "+long)},
		"patterns over many objects": {"kustomization.yaml": hostileHead + "resources: [a.yaml]\nreplacements:\n" + selects, "a.yaml": configs.String()},
	}
}
