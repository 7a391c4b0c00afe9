package plan

import (
	"strings"
	"testing"
)

func operatedRelease(change func(*Release)) *Release {
	r := &Release{
		ID: ID{Kind: "HelmRelease.helm.fluxcd.io", Namespace: "apps", Name: "web"}, Origin: "a", Values: "1", ValuesKey: "1",
		Target: Target{Name: "apps-web", Namespace: "apps", StorageNamespace: "apps"},
		Chart:  &Chart{Name: "web", Version: "1.0.0", Digest: "sha256:1"},
		Operated: &Operated{
			Spec: map[string]any{"timeout": 300, "chart": map[string]any{"version": "1.0.0"}}, Revision: "1.0.0",
			Sources: NewSources(map[string][]byte{"Chart.yaml": []byte("{name: web, version: 1.0.0}"), "templates/a.yaml": []byte("a"), "charts/b/values.yaml": []byte("a: 1")}),
		},
	}
	if change != nil {
		change(r)
	}
	return r
}

func sourcesWith(name, text string) *Sources {
	files := map[string][]byte{"Chart.yaml": []byte("{name: web, version: 1.0.0}"), "templates/a.yaml": []byte("a"), "charts/b/values.yaml": []byte("a: 1")}
	files[name] = []byte(text)
	return NewSources(files)
}

// other gives a release another chart of the same version.
func other(r *Release) {
	r.Origin, r.Chart = "b", &Chart{Name: "web", Version: "1.0.0", Digest: "sha256:2"}
}

func ofGit(revision string, files map[string]string) func(*Release) {
	return func(r *Release) { r.Operated.Git, r.Operated.Revision, r.Operated.Files = true, revision, files }
}

// TestDecideOperated goes through the operator's list.
func TestDecideOperated(t *testing.T) {
	none := func(*Release) {}
	for name, c := range map[string]struct {
		before, after func(*Release)
		action        Action
		text          string
	}{
		"nothing":        {none, none, None, "no change"},
		"no release":     {nil, none, Install, "install or upgrade (no earlier run is recorded)"},
		"removed":        {none, nil, Uninstall, "only in the last fetch"},
		"removed, kept":  {func(r *Release) { r.Kept = true }, nil, None, "removed, but its Kustomization does not prune"},
		"no chart":       {none, func(r *Release) { r.Blocked = "chart download failed" }, Blocked, "chart download failed"},
		"had no chart":   {func(r *Release) { r.Blocked = "chart download failed" }, none, Upgrade, "was blocked: chart download failed"},
		"ignored":        {none, func(r *Release) { r.Suspended = true }, None, "ignored by Flux 1: nothing"},
		"ignored before": {func(r *Release) { r.Suspended = true }, none, None, "not ignored any more"},
		"spec": {none, func(r *Release) {
			r.Operated.Spec = map[string]any{"timeout": 600, "chart": map[string]any{"version": "1.0.0"}}
		}, Upgrade, "spec changed: timeout"},
		"field of a field": {
			none, func(r *Release) {
				r.Operated.Spec = map[string]any{"timeout": 300, "chart": map[string]any{"version": "1.1.0"}}
			},
			Upgrade, "spec changed: chart.version",
		},
		"values":  {none, func(r *Release) { r.ValuesKey = "2" }, Upgrade, "values changed"},
		"renamed": {none, func(r *Release) { r.Target.Name = "web" }, Install, "Helm release changed: apps/apps-web -> apps/web (the former release stays installed)"},
		"version": {none, func(r *Release) { other(r); r.Chart.Version = "1.1.0" }, Upgrade, "chart changed: web 1.0.0 -> web 1.1.0"},
		"template": {
			none, func(r *Release) { other(r); r.Operated.Sources = sourcesWith("templates/b.yaml", "b") },
			Upgrade, "templates changed (a running operator keeps the archive that it has): templates/b.yaml added",
		},
		"default values": {none, func(r *Release) { other(r); r.Operated.Sources = sourcesWith("values.yaml", "a: 1") }, Upgrade, "the dry run differs"},
		"default values of a subchart": {
			none, func(r *Release) { other(r); r.Operated.Sources = sourcesWith("charts/b/values.yaml", "a: 2") },
			Upgrade, "may be upgraded: default values of subcharts changed (not if the subchart is disabled): charts/b/values.yaml",
		},
		"template of a subchart": {
			none, func(r *Release) { other(r); r.Operated.Sources = sourcesWith("charts/b/templates/a.yaml", "b") },
			None, "no upgrade: its version, values and templates are the same",
		},
		"unknown files":           {none, func(r *Release) { other(r); r.Operated.Sources = nil }, Upgrade, "may be upgraded: the chart differs"},
		"unknown files of one":    {none, func(r *Release) { r.Operated.Sources = nil }, None, "no change"},
		"unknown files, a digest": {func(r *Release) { r.Origin = "" }, func(r *Release) { r.Operated.Sources = nil }, None, "no change"},
		"commit": {
			ofGit("a", map[string]string{"x": "1"}), ofGit("b", map[string]string{"x": "2", "y": "1"}),
			Upgrade, "chart changed: a -> b: x, y added",
		},
		"commit, unknown chart": {ofGit("a", nil), func(r *Release) { ofGit("b", nil)(r); r.Operated.Sources = nil }, Upgrade, "may be upgraded: another commit: a -> b (its changes are not known)"},
		"status":                {func(r *Release) { r.Operated.FromStatus, r.Operated.Spec = true, nil }, none, None, "no change"},
		"status of another generation": {
			func(r *Release) { r.Operated.FromStatus, r.Operated.Unobserved, r.Operated.Spec = true, true, nil }, none, Upgrade, "spec changed (its generation is newer",
		},
		"rolled back, retried":  {func(r *Release) { r.Operated.FromStatus, r.Operated.Retried = true, true }, none, Upgrade, "was rolled back (spec.rollback.retry"},
		"commit elsewhere":      {ofGit("a", map[string]string{"x": "1"}), ofGit("b", map[string]string{"x": "1"}), None, "another commit: a -> b"},
		"commit that deletes":   {ofGit("a", map[string]string{"x": "1"}), ofGit("b", map[string]string{}), None, "another commit: a -> b"},
		"commit, unknown files": {ofGit("a", nil), ofGit("b", map[string]string{"x": "1"}), None, "another commit: a -> b"},
	} {
		t.Run(name, func(t *testing.T) {
			var p Pair
			if c.before != nil {
				p.Before = operatedRelease(c.before)
			}
			if c.after != nil {
				p.After = operatedRelease(c.after)
			}
			change := Decide([]Pair{p}, TheLastFetch)[0]
			text := strings.Join(change.Texts(), "; ")
			if change.Action != c.action || !strings.Contains(text, c.text) {
				t.Errorf("%s: %s\nwant %s: …%s…", change.Action, text, c.action, c.text)
			}
		})
	}
}

// TestClashing lets the operator manage a Helm release for one HelmRelease only.
func TestClashing(t *testing.T) {
	a, b := operatedRelease(nil), operatedRelease(func(r *Release) { r.Name = "other" })
	for i, c := range Decide([]Pair{{After: a}, {After: b}}, "main") {
		if c.Action != Blocked {
			t.Errorf("%d: %s", i, c.Action)
		}
	}
	b.Suspended = true
	if c := Decide([]Pair{{After: a}, {After: b}}, "main")[0]; c.Action != Install {
		t.Errorf("beside one that is ignored: %s", c.Action)
	}
}

// TestSources compares no comments, no layout, and no other files.
func TestSources(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		differs    bool
	}{
		"comment in values":  {"values.yaml", "# new\na:   1\n", false},
		"values":             {"values.yaml", "a: 2", true},
		"invalid values":     {"values.yaml", "a: [", true},
		"template":           {"templates/a.yaml", "b", true},
		"notes":              {"templates/NOTES.txt", "b", true},
		"appVersion":         {"Chart.yaml", "{name: web, version: 1.0.0, appVersion: 1}", true},
		"description":        {"Chart.yaml", "{name: web, version: 1.0.0, description: new}", false},
		"invalid metadata":   {"Chart.yaml", "[", true},
		"CRD":                {"crds/a.yaml", "b", false},
		"README":             {"README.md", "b", false},
		"values of no chart": {"charts/b/files/values.yaml", "b", false},
	} {
		old := map[string][]byte{"Chart.yaml": []byte("{name: web, version: 1.0.0}"), "values.yaml": []byte("a: 1"), "templates/a.yaml": []byte("a")}
		now := map[string][]byte{}
		for name, data := range old {
			now[name] = data
		}
		now[c.file] = []byte(c.text)
		fields, subcharts := NewSources(old).differences(NewSources(now))
		if len(fields) > 0 != c.differs || len(subcharts) > 0 {
			t.Errorf("%s: %v %v", name, fields, subcharts)
		}
	}
}

// TestRendered: an upgrade that may happen becomes certain if the rendered manifests differ.
func TestRendered(t *testing.T) {
	uncertain := func() *Change {
		return &Decide([]Pair{{Before: operatedRelease(nil), After: operatedRelease(func(r *Release) { other(r); r.Operated.Sources = nil })}}, "main")[0]
	}
	if c := uncertain(); !strings.HasPrefix(c.Texts()[0], "may be upgraded: the chart differs") {
		t.Error(c.Texts())
	}
	c := uncertain()
	c.Rendered(true)
	if text := c.Texts()[0]; !strings.HasPrefix(text, "the chart differs, but not its version: ") || !strings.HasSuffix(text, "(and the rendered objects)") {
		t.Error(text)
	}
	c = uncertain()
	c.Rendered(false)
	if text := c.Texts()[0]; !strings.HasPrefix(text, "may be upgraded: ") || !strings.HasSuffix(text, "(it renders the same objects)") {
		t.Error(text)
	}
}
