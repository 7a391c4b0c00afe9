package foresee

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestStripped removes the changes of every new version of a chart, except where Kubernetes refuses such a change.
func TestStripped(t *testing.T) {
	for name, tc := range map[string]struct {
		object  string // VERSION stands for that of the chart
		changed bool
	}{
		"labels of an object":            {"metadata: {labels: {app: a, helm.sh/chart: a-VERSION}}", false},
		"nothing but such labels":        {"metadata: {labels: {app.kubernetes.io/version: VERSION}}", false},
		"a checksum of pods":             {"spec: {template: {metadata: {annotations: {checksum/config: VERSION}}}}", false},
		"another annotation":             {"metadata: {annotations: {config: VERSION}}", true},
		"a selector":                     {"spec: {selector: {matchLabels: {app.kubernetes.io/version: VERSION}}}", true},
		"the selector of a Service":      {"spec: {selector: {app.kubernetes.io/version: VERSION}}", true},
		"a template of volume claims":    {"spec: {volumeClaimTemplates: [{metadata: {labels: {helm.sh/chart: VERSION}}}]}", true},
		"a field that is called labels":  {"spec: {labels: {helm.sh/chart: VERSION}}", true},
		"objects in a list of an object": {"items: [{metadata: {labels: {helm.sh/chart: VERSION}}}]", false},
	} {
		t.Run(name, func(t *testing.T) {
			m := manifestsOf(renderedAt(t, tc.object, "1.0.0"), renderedAt(t, tc.object, "2.0.0"), true)
			if changed := len(m.Changed) == 1; changed != tc.changed || m.Stripped+len(m.Changed) != 1 {
				t.Errorf("changed %v, stripped %d", m.Changed, m.Stripped)
			}
		})
	}
}

func renderedAt(t *testing.T, object, version string) map[string]map[string]any {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(object, "VERSION", version)), &content); err != nil {
		t.Fatal(err)
	}
	return map[string]map[string]any{"object": content}
}
