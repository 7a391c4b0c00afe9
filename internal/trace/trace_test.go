package trace

import (
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/helmtest/inputs"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/outline"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

const releases = `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: apps}
spec: {interval: 5m, url: "https://user:hidden@charts.example.org", secretRef: {name: login}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: one, namespace: apps}
spec:
  interval: 5m
  chart: {spec: {chart: podinfo, version: 6.x, sourceRef: {kind: HelmRepository, name: charts}, verify: {provider: cosign, secretRef: {name: keys}}}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: two, namespace: apps}
spec:
  interval: 5m
  dependsOn: [{name: one}]
  chart: {spec: {chart: other, sourceRef: {kind: HelmRepository, name: missing}}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: image, namespace: apps}
spec: {interval: 5m, url: "oci://registry.example.org/image", provider: aws, verify: {provider: notation}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: git, namespace: apps}
spec: {interval: 5m, url: "https://git.example.org/repo", ref: {branch: main}}
`

func read(t *testing.T) (*load.Input, Tracer) {
	t.Helper()
	w, _ := inputs.Worker()
	return inputs.Read(t, w, load.Options{}, map[string]string{"all.yaml": releases})[0], Tracer{w.Console}
}

func find(t *testing.T, in *load.Input, kind, name string) *manifest.Object {
	t.Helper()
	all := in.Inventory.Objects()
	i := slices.IndexFunc(all, func(o *manifest.Object) bool { return o.Kind == kind && o.Name == name })
	if i < 0 {
		t.Fatalf("no %s %s", kind, name)
	}
	return all[i]
}

// TestAnswer follows a release to its source, without secrets in its URL, and back to the objects that depend on it.
func TestAnswer(t *testing.T) {
	t.Parallel()
	in, tracer := read(t)
	a := tracer.Answer(in, find(t, in, "HelmRelease", "one"), nil)
	if len(a.Sources) != 3 || a.Problem != "" {
		t.Fatalf("sources %v, problem %q", a.Sources, a.Problem)
	}
	chart, repository := a.Sources[1], a.Sources[2]
	if chart.Object != "HelmChart apps/apps-one" || chart.Verification != "cosign with the keys in Secret apps/keys" || !strings.HasSuffix(chart.File, "(made of HelmRelease apps/one)") {
		t.Errorf("chart: %+v", chart)
	}
	if repository.Login != "the Secret apps/login, which spec.secretRef names" || strings.Contains(repository.URL, "hidden") || !strings.HasSuffix(repository.URL, "charts.example.org") {
		t.Errorf("repository: %+v", repository)
	}
	if len(a.Dependents) != 1 || a.Dependents[0].Object != "HelmRelease apps/two" || a.Dependents[0].How != "depends on it" {
		t.Errorf("dependents: %v", a.Dependents)
	}
	a = tracer.Answer(in, find(t, in, "HelmRepository", "charts"), nil)
	if len(a.Dependents) != 1 || a.Dependents[0].Object != "HelmRelease apps/one" || a.Dependents[0].How != "takes its chart from it" {
		t.Errorf("dependents of the repository: %v", a.Dependents)
	}
}

// TestLogin expects, for each kind of source, the login and the verification of signatures.
func TestLogin(t *testing.T) {
	t.Parallel()
	in, tracer := read(t)
	for _, test := range []struct{ kind, name, login, verification string }{
		{"OCIRepository", "image", "the identity of this machine at aws", "notation, keyless"},
		{"GitRepository", "git", "none", ""},
	} {
		s := tracer.Answer(in, find(t, in, test.kind, test.name), nil).Sources[0]
		if s.Login != test.login || s.Verification != test.verification {
			t.Errorf("%s: login %q, verification %q", test.kind, s.Login, s.Verification)
		}
	}
}

// TestBecause gives the reason for each version around the chosen one.
func TestBecause(t *testing.T) {
	t.Parallel()
	in, _ := read(t)
	r := &reconcile.Result{}
	adm, err := in.Inventory.Admit(find(t, in, "HelmRelease", "one"))
	if err != nil {
		t.Fatal(err)
	}
	r.Object = adm
	p := &reconcile.Published{Chart: "podinfo", Constraint: "6.5.0", Wanted: "6.5.0", Exact: true}
	for _, v := range []string{"9.0.0", "8.5.0", "8.4.0", "8.3.0", "8.2.0", "8.1.0", "7.0.0", "6.6.0-rc.1", "6.5.0", "6.4.0", "6.3.0", "6.2.0", "6.1.0"} {
		p.Versions = append(p.Versions, resolve.Candidate{Version: v, Removed: v == "8.2.0", Deprecated: v == "6.3.0"})
	}
	v := newWhyVersion(r, p)
	var got []string
	for _, c := range v.Candidates {
		got = append(got, c.Version+": "+c.Because)
	}
	want := []string{
		"8.3.0: not the pinned version", "8.2.0: not the pinned version", "8.1.0: not the pinned version", "7.0.0: not the pinned version",
		"6.6.0-rc.1: not the pinned version", "6.5.0: chosen: pinned", "6.4.0: not the pinned version", "6.3.0: not the pinned version; deprecated",
		"6.2.0: not the pinned version",
	}
	if !slices.Equal(got, want) || v.Published != len(p.Versions) || v.Chosen != "6.5.0" {
		t.Errorf("%d published, chosen %s:\n%s", v.Published, v.Chosen, strings.Join(got, "\n"))
	}
	p.Exact, p.Versions = false, []resolve.Candidate{{Version: "6.6.0", Removed: true, Deprecated: true}, {Version: "6.5.0"}}
	found := newWhyVersion(r, p).Candidates
	if len(found) != 2 || found[0].Because != "removed by its publisher; deprecated" || found[1].Because != "chosen: the newest that matches the constraint" {
		t.Errorf("of a range: %v", found)
	}
}

// TestDecided expects the origin of a value that differs from the file: a patch before a variable.
func TestDecided(t *testing.T) {
	t.Parallel()
	w, _ := inputs.Worker()
	in := inputs.Read(t, w, load.Options{}, map[string]string{
		"sync.yaml": `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec: {interval: 5m, prune: true, path: ./apps, sourceRef: {kind: GitRepository, name: fleet}, postBuild: {substitute: {version: 6.x}}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: flux-system}
spec: {interval: 5m, url: "https://git.example.org/fleet"}
`,
		"apps/all.yaml": releases,
		"apps/more.yaml": `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: more, namespace: apps}
spec: {interval: 5m, chart: podinfo, version: "${version}", sourceRef: {kind: HelmRepository, name: charts}}
`,
		"apps/kustomization.yaml": `resources: [all.yaml, more.yaml]
patches:
  - target: {kind: HelmRelease, name: one}
    patch: '[{"op": "replace", "path": "/spec/chart/spec/version", "value": "5.x"}]'
`,
	})[0]
	tracer := Tracer{w.Console}
	for _, test := range []struct{ kind, name, field, by string }{
		{"HelmChart", "more", "spec.version", "the variable version"},
		{"HelmRelease", "one", "spec.chart.spec.version", "the patch "},
	} {
		a := tracer.Answer(in, find(t, in, test.kind, test.name), nil)
		if len(a.Decided) != 1 || a.Decided[0].Field != test.field || !strings.HasPrefix(a.Decided[0].By, test.by) {
			t.Errorf("%s: %+v", test.name, a.Decided)
		}
	}
}

// TestOutline puts objects below their sources, and names a source that is in no file.
func TestOutline(t *testing.T) {
	t.Parallel()
	in, tracer := read(t)
	var names []string
	var walk func(n *outline.Node)
	walk = func(n *outline.Node) {
		names = append(names, n.Kind+"/"+n.Name)
		for _, c := range n.Children {
			walk(c)
		}
	}
	for _, n := range tracer.Outline(in, nil).Selected() {
		walk(n)
	}
	if len(tracer.Outline(in, nil).Selected()) == 0 {
		t.Error("the outline is empty")
	}
	for kind, want := range map[string]string{"GitRepository git": "main", "OCIRepository image": "", "HelmChart apps-one": "6.x", "HelmChart apps-two": "*"} {
		kind, name, _ := strings.Cut(kind, " ")
		if n := tracer.Outline(in, nil).nodes[find(t, in, kind, name)]; n.Constraint != want {
			t.Errorf("%s: constraint %q, want %q", name, n.Constraint, want)
		}
	}
	in.Selectors = []load.Selector{{Kind: "OCIRepository", Name: "image"}}
	if selected := tracer.Outline(in, nil).Selected(); len(selected) != 1 || len(selected[0].Children) != 1 || selected[0].Children[0].Name != "image" {
		t.Errorf("selected: %+v", selected)
	}
	for _, want := range []string{"HelmRepository/charts", "HelmRelease/one", "HelmRepository/missing", "HelmRelease/two", "OCIRepository/image"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not in the outline: %v", want, names)
		}
	}
}
