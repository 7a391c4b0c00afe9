package inventory

import (
	"fmt"
	"strings"
	"testing"
)

// generatorOf returns a generator that uses the ExternalArtifacts of other generators and makes one with its own name.
func generatorOf(name string, sources ...string) string {
	text := fmt.Sprintf("---\napiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {name: %s, namespace: ns}\nspec:\n  sources:\n", name)
	for i, s := range sources {
		text += fmt.Sprintf("  - {alias: s%d, kind: ExternalArtifact, name: %s}\n", i, s)
	}
	return text + fmt.Sprintf("  artifacts: [{name: %s, copy: [{from: \"@s0/**\", to: \"@artifact/\"}]}]\n", name)
}

func TestCycle(t *testing.T) {
	inv := inventoryOf(t, generatorOf("a", "b", "d")+generatorOf("b", "c")+generatorOf("c", "a", "nowhere")+generatorOf("d", "b")+
		generatorOf("self", "self")+generatorOf("waits", "a")+generatorOf("other", "made")+
		"---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: ExternalArtifact\nmetadata: {name: made, namespace: ns}\nspec: {}\n")
	const of = " → "
	abc := "ns/a" + of + "ns/b" + of + "ns/c" + of + "ns/a"
	want := map[string]string{
		"a": abc, "b": abc, "c": abc,
		// A generator that the search has already found is still on a cycle.
		"d":    "ns/a" + of + "ns/d" + of + "ns/b" + of + "ns/c" + of + "ns/a",
		"self": "ns/self" + of + "ns/self",
	}
	for _, obj := range inv.Objects() {
		if !isGenerator(obj) {
			continue
		}
		got := ""
		if cycle := inv.Cycle(obj); cycle != nil {
			got = strings.TrimPrefix(cycle.Error(), "cycle of ArtifactGenerators: ")
		}
		if got != want[obj.Name] {
			t.Errorf("%s: %q, want %q", obj.Name, got, want[obj.Name])
		}
	}
}

// A path through thousands of generators is searched once for all of them, and no error names them all.
func TestLongCycles(t *testing.T) {
	const count = 3000
	var text strings.Builder
	for i := range count {
		text.WriteString(generatorOf(fmt.Sprintf("g%d", i), fmt.Sprintf("g%d", (i+1)%count)))
	}
	inv := inventoryOf(t, text.String())
	for _, obj := range inv.Objects() {
		if !isGenerator(obj) {
			continue
		}
		want := fmt.Sprintf("ArtifactGenerators: ns/g0 → %d others → ns/g0", count-1)
		if cycle := inv.Cycle(obj); cycle == nil || !strings.HasSuffix(cycle.Error(), want) {
			t.Fatalf("%s: %v, want %s", obj.Name, cycle, want)
		}
	}
	inv = inventoryOf(t, generatorOf("a", "b")+generatorOf("b", "c")+generatorOf("c", "d")+generatorOf("d", "e")+generatorOf("e", "f")+
		generatorOf("f", "g")+generatorOf("g", "h")+generatorOf("h", "i")+generatorOf("i", "a"))
	if cycle := inv.Cycle(inv.Objects()[0]); cycle == nil || !strings.HasSuffix(cycle.Error(), " ns/g → 2 others → ns/a") {
		t.Error(cycle)
	}
}
