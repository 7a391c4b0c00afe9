package program

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maxHostile is the limit, in bytes, of the memory of a run over a hostile kustomization.
const maxHostile = 512 << 20

const hostileHead = "# toolkit.fluxcd.io\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"

// hostile returns small kustomizations that would need far more memory than a computer has.
func hostile() map[string]map[string]string {
	config := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: apps}\ndata: {a: xxxxxxxx, b: xxxxxxxx}\n"
	replacement := func(from, to, options string) string {
		return fmt.Sprintf("- source: {kind: ConfigMap, fieldPath: %s}\n  targets: [{select: {kind: ConfigMap}, fieldPaths: [%s], options: %s}]\n", from, to, options)
	}
	appending := replacement("data.a", "data.a", "{delimiter: ',', index: 9999}")
	var copies, distinct, values, nested strings.Builder
	for i := range 40 {
		fmt.Fprintf(&copies, "- {op: copy, from: /data, path: /data/c%d}\n", i)
		distinct.WriteString(strings.Repeat(replacement(fmt.Sprintf("data.k%d", i), fmt.Sprintf("data.k%d", i+1), "{delimiter: ',', index: 9999}"), 2))
		fmt.Fprintf(&values, ", k%d: x", i)
		nested.WriteString(replacement("data", fmt.Sprintf("data.c%d", i), "{create: true}"))
	}
	values.WriteString(", k40: x")
	indent := func(text string, by int) string {
		pad := strings.Repeat(" ", by)
		return pad + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+pad) + "\n"
	}
	layers := func(field string) map[string]string {
		files := map[string]string{"l0/kustomization.yaml": hostileHead + "resources: [a.yaml]\n", "l0/a.yaml": config}
		for i := range 40 {
			files[fmt.Sprintf("l%d/kustomization.yaml", i+1)] = hostileHead + fmt.Sprintf("resources: [../l%d]\n", i) + field
		}
		return files
	}
	one := func(fields string) map[string]string {
		return map[string]string{"kustomization.yaml": hostileHead + "resources: [a.yaml]\n" + fields, "a.yaml": config}
	}
	byPatch := "patches:\n- target: {kind: ConfigMap}\n  patch: |\n" + indent(copies.String(), 4)
	flux := "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\n" +
		"spec:\n  interval: 1h\n  prune: true\n  path: ./apps\n  sourceRef: {kind: GitRepository, name: flux-system}\n" +
		"  patches:\n  - target: {kind: ConfigMap}\n    patch: |\n" + indent(copies.String(), 6)
	huge := strings.Repeat("x", 60_000)
	definitions := `{"D0": {"Schema": {"properties": {"kind": {}, "apiVersion": {}, "metadata": {}, "a": {"$ref": "D1"}}}}`
	for i := range 40 {
		definitions += fmt.Sprintf(`, "D%d": {"Schema": {"properties": {"a": {"$ref": "D%d"}, "b": {"$ref": "D%d"}}}}`, i+1, i+2, i+2)
	}
	var many strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&many, "apiVersion: v1\nkind: Pod\nmetadata: {name: a%d}\nspec: {containers: [{name: a, image: b}]}\n---\n", i)
	}
	var fields strings.Builder
	for i := range 4_000 {
		fmt.Fprintf(&fields, "- {path: metadata/annotations/a%d, create: true}\n", i)
	}
	return map[string]map[string]string{
		"replacements that append to their source": one("replacements:\n" + strings.Repeat(appending, 34)),
		"replacements that append to the next":     {"kustomization.yaml": hostileHead + "resources: [a.yaml]\nreplacements:\n" + distinct.String(), "a.yaml": strings.Replace(config, "}\ndata: {", "}\ndata: {"+values.String()[2:]+", ", 1)},
		"replacements by turns":                    one("replacements:\n" + strings.Repeat(replacement("data.a", "data.b", "{delimiter: ',', index: 9999}")+replacement("data.b", "data.a", "{delimiter: ',', index: 9999}"), 30)),
		"replacements that copy into their source": one("replacements:\n" + nested.String()),
		"replacements of a plugin":                 one("transformers:\n- |\n  apiVersion: builtin\n  kind: ReplacementTransformer\n  metadata: {name: a}\n  replacements:\n" + indent(strings.Repeat(appending, 34), 2)),
		"replacements in layers":                   layers("replacements:\n" + appending),
		"copies":                                   one(byPatch),
		"copies in layers":                         layers("patches:\n- target: {kind: ConfigMap}\n  patch: |\n    - {op: copy, from: /data, path: /data/c}\n    - {op: move, from: /data, path: /d}\n    - {op: move, from: /d, path: /data}\n    - {op: copy, from: /data, path: /data/d}\n"),
		"copies in as many patches":                one("patches:\n" + strings.Repeat("- target: {kind: ConfigMap}\n  patch: |\n    - {op: copy, from: /data, path: /data/-}\n    - {op: copy, from: /data, path: /x}\n    - {op: move, from: /x, path: /data/x}\n", 40)),
		"copies of a plugin":                       one("transformers:\n- |\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: a}\n  target: {kind: ConfigMap}\n  patch: |\n" + indent(copies.String(), 4)),
		"copies of a Flux Kustomization":           {"flux.yaml": flux, "apps/kustomization.yaml": hostileHead + "resources: [a.yaml]\n", "apps/a.yaml": config},
		"equal keys":                               {"kustomization.yaml": hostileHead + "resources: [a.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: |\n    - {op: add, path: /data, value: {a: b}}\n", "a.yaml": strings.Replace(config, "{a: ", "{"+strings.Repeat("a: b, ", 30_000)+"a: ", 1)},
		"equal keys of an operator":                {"a.yaml": "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\nspec:\n  distribution: {version: 2.x, registry: ghcr.io/fluxcd}\n  sync: {kind: GitRepository, url: 'https://git.test/a', path: a, ref: '{" + strings.Repeat("a: b, ", 30_000) + "}'}\n"},
		"definitions that refer to others twice":   {"kustomization.yaml": hostileHead + "resources: [a.yaml]\ncrds: [c.json]\n", "a.yaml": config, "c.json": definitions + "}"},
		"a long label selector":                    {"kustomization.yaml": hostileHead + "resources: [a.yaml]\npatches:\n- target: {labelSelector: '" + strings.Repeat("a=b,", 100_000) + "a=b'}\n  patch: |\n    - {op: add, path: /data, value: {}}\n", "a.yaml": many.String()},
		"a long name of an image":                  {"kustomization.yaml": hostileHead + "resources: [a.yaml]\nimages: [{newTag: '1', name: '(" + strings.Repeat("ab|", 100_000) + "c)'}]\n", "a.yaml": many.String()},
		"a long prefix in many fields":             {"kustomization.yaml": hostileHead + "resources: [a.yaml]\nconfigurations: [c.yaml]\nnamePrefix: " + strings.Repeat("x", 1_000_000) + "\n", "a.yaml": config, "c.yaml": "namePrefix:\n" + fields.String()},
		"variables":                                {"kustomization.yaml": hostileHead + "resources: [a.yaml]\nvars: [{name: A, objref: {kind: ConfigMap, name: a, apiVersion: v1}, fieldref: {fieldpath: data.a}}]\nconfigurations: [c.yaml]\n", "c.yaml": "varReference: [{path: data/b, kind: ConfigMap}]\n", "a.yaml": strings.Replace(strings.Replace(config, "b: xxxxxxxx", "b: "+strings.Repeat("$(A)", 5_000), 1), "a: xxxxxxxx", "a: "+huge, 1)},
	}
}

// refused matches the error of such a run, which is refused in advance or given up.
var refused = regexp.MustCompile(`(?m)^error: .*(more than 32 MiB|openapi.path: s.json: larger than 5 MiB|more than 5000 kustomizations|openapi.path: invalid schema file: .*exceeded max depth|error parsing regexp: invalid repeat count|vars: \d+ references|openapi.path: .*a schema that refers to itself|is copied into itself|the kustomize build was given up: it needs more than|more than 10000 pairs of equal keys in mappings|FluxInstance flux-system/flux: .* longer than 4096 bytes)`)

// TestExhausted runs validate over each of the hostile kustomizations. It ends with an error, in bounded memory.
func TestExhausted(t *testing.T) {
	cases := hostile()
	maps.Copy(cases, doubling())
	maps.Copy(cases, patterns())
	for name, files := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, "podinfo 6.5.0\n")
			for file, text := range files {
				s.write("in/"+file, text)
			}
			s.write("in/.git/HEAD", "")
			cmd := s.command("validate", "-R", "-f", "in")
			var stderr strings.Builder
			cmd.Stderr = &stderr
			used, err := peak(cmd)
			if err == nil || !refused.MatchString(stderr.String()) {
				t.Errorf("no error: %v\n%.1000s", err, &stderr)
			}
			if used == 0 || used > maxHostile*raceFactor {
				t.Errorf("needs %d MiB of memory", used>>20)
			} else {
				t.Logf("%d MiB, %v: %.300s", used>>20, cmd.ProcessState.UserTime(), &stderr)
			}
		})
	}
}

// TestLargeBlob compares a working tree with a revision that has a file of 300 MB outside of all manifests. The file is read
// in little memory.
func TestLargeBlob(t *testing.T) {
	const size, most = 300_000_000, 256 << 20
	s := newStage(t, "podinfo 6.5.0\n")
	s.write("in/release.yaml", `
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: repo, namespace: apps}
spec: {interval: 5m, url: "http://repo.test"}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: podinfo, namespace: apps}
spec:
  interval: 5m
  chart: {spec: {chart: podinfo, sourceRef: {kind: HelmRepository, name: repo}}}
`)
	f, err := os.Create(filepath.Join(s.dir, "in", "large.bin"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "one"}} {
		git := exec.CommandContext(t.Context(), "git", append([]string{"-C", filepath.Join(s.dir, "in"), "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args[0], err, out)
		}
	}
	cmd := s.command("plan", "-f", "in/release.yaml", "--against", "HEAD")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	used, err := peak(cmd)
	if err != nil || !strings.Contains(out.String(), "1 unchanged") {
		t.Fatalf("%v\n%s", err, &out)
	}
	if used == 0 || used > most*raceFactor {
		t.Errorf("needs %d MiB of memory", used>>20)
	}
}
