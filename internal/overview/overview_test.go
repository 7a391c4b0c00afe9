package overview

import (
	"bytes"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/table"
)

func document(spec map[string]any, labels map[string]any) map[string]any {
	return map[string]any{"spec": spec, "metadata": map[string]any{"labels": labels}}
}

// TestRelease has one row for a release and its chart: the chart's version, the release's state. The source that the release uses
// has no row, an unused source has one.
func TestRelease(t *testing.T) {
	var rows Table
	ref := map[string]any{"kind": "HelmRepository", "name": "charts"}
	object := func(kind, name, state, version string) report.Object {
		return report.Object{Kind: kind, Namespace: "apps", Name: name, State: state, Version: version}
	}
	rows.Add(document(map[string]any{"url": "https://charts.example.org"}, nil), object("HelmRepository", "charts", report.StateReady, ""))
	rows.Add(document(map[string]any{"url": "https://other.example.org"}, nil), object("HelmRepository", "idle", report.StateReady, ""))
	rows.Add(document(map[string]any{"chart": "podinfo", "version": "6.x", "sourceRef": ref}, map[string]any{
		"helm.toolkit.fluxcd.io/name": "app", "helm.toolkit.fluxcd.io/namespace": "apps",
	}), object("HelmChart", "apps-app", report.StateReady, "6.2.1"))
	rows.Add(document(map[string]any{"chart": map[string]any{"spec": map[string]any{"chart": "podinfo", "version": "6.x", "sourceRef": ref}}}, nil),
		object("HelmRelease", "app", report.StateFailed, ""))
	var b bytes.Buffer
	if err := rows.Write(&b, table.Style{}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(b.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"RELEASE CHART VERSION SOURCE STATE", "app podinfo 6.2.1 HelmRepository/charts failed", "",
		"SOURCE URL REVISION STATE", "HelmRepository/idle https://other.example.org ready",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the table is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestStateColor: failed and blocked objects stand out.
func TestStateColor(t *testing.T) {
	for cell, want := range map[string]table.Color{
		report.StateReady: table.Green, "failed: not found": table.Red, report.StateBlocked: table.Yellow, "other": table.Plain,
	} {
		if got := StateColor("STATE", cell); got != want {
			t.Errorf("%s has the colour %q, want %q", cell, got, want)
		}
	}
	if got := StateColor("RELEASE", report.StateReady); got != table.Plain {
		t.Errorf("a release called ready has the colour %q", got)
	}
}
