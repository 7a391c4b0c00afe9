package render

import (
	"fmt"
	"strings"
	"testing"
)

// TestOrdinaryCopies accepts ordinary copies, in any number.
func TestOrdinaryCopies(t *testing.T) {
	replacement := func(from, kind, to, options string) string {
		return fmt.Sprintf("- source: {kind: ConfigMap, name: settings, fieldPath: %s}\n  targets: [{select: {kind: %s}, fieldPaths: [%s], options: %s}]\n", from, kind, to, options)
	}
	for name, fields := range map[string]string{
		"settings":        "replacements:\n" + strings.Repeat(replacement("data.domain", "HelmRepository", "spec.url", "{delimiter: '/', index: 2}"), 200),
		"one to the next": "replacements:\n" + replacement("data.domain", "ConfigMap", "data.host", "{}") + replacement("data.host", "HelmRepository", "spec.url", "{delimiter: '/', index: 2}"),
		"swapped":         "replacements:\n" + strings.Repeat(replacement("data.domain", "ConfigMap", "data.host", "{}")+replacement("data.host", "ConfigMap", "data.domain", "{}"), 100),
		"copies": "patches:\n- target: {kind: ConfigMap}\n  patch: |\n" + strings.Repeat(
			"    - {op: copy, from: /data/host, path: /data/name}\n    - {op: move, from: /data/name, path: /data/other}\n", 50),
	} {
		dir := t.TempDir()
		write(t, dir, map[string]string{
			"kustomization.yaml": "resources: [repo.yaml, settings.yaml]\n" + fields, "repo.yaml": fmt.Sprintf(aRepository, "a"),
			"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: apps}\ndata: {domain: example.org, host: a}\n",
		})
		if set, _, errs := load(t.Context(), dir, Options{}); len(errs) > 0 || len(names(set)) == 0 {
			t.Errorf("%s: %v", name, errs)
		}
	}
}
