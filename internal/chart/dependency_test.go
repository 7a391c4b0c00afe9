package chart

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
)

// wanted spells requirements as name@version, with the alias after a colon.
func wanted(deps []*helmchart.Dependency) string {
	var s []string
	for _, d := range deps {
		name := d.Name + "@" + d.Version
		if d.Alias != "" {
			name += ":" + d.Alias
		}
		s = append(s, name)
	}
	return strings.Join(s, " ")
}

func withVersion(name, version string) string {
	return "apiVersion: v2\nname: " + name + "\nversion: " + version + "\n"
}

func TestMissing(t *testing.T) {
	const four = "dependencies: [{name: helmchart, version: 0.1.0, repository: 'file://../helmchart'}, {name: helmchart, version: 0.1.0, alias: aliased, repository: 'file://../helmchart'}," +
		" {name: grafana, version: '>=5.7.0', repository: 'https://grafana.github.io/helm-charts'}, {name: podinfo, version: 6.1.*, repository: 'oci://ghcr.io/stefanprodan/charts'}]\n"
	const lock = "digest: sha256:old\ndependencies: [{name: helmchart, version: 0.1.0, repository: 'file://../helmchart'}, {name: helmchart, version: 0.1.0, repository: 'file://../helmchart'}, {name: grafana, version: 6.17.4, repository: 'https://grafana.github.io/helm-charts'}]\n"
	const stale = "the lock file is out of sync with the dependencies of the chart"
	for _, tt := range []struct {
		name     string
		files    []string
		want     string
		warnings string
	}{
		{name: "case 43: no dependencies", files: []string{"Chart.yaml", minimal}},
		{name: "case 43: three locked entries, two charts", files: []string{"Chart.yaml", minimal + four, "Chart.lock", lock}, want: "helmchart@0.1.0 grafana@6.17.4", warnings: stale},
		{name: "case 43: v1", files: []string{"Chart.yaml", "name: a\nversion: 1.0.0\n", "requirements.yaml", "dependencies: [{name: helmchart, version: 0.1.0}]\n"}, want: "helmchart@0.1.0"},
		{name: "v1, locked", files: []string{"Chart.yaml", "name: a\nversion: 1.0.0\n", "requirements.yaml", "dependencies: [{name: b, version: ^0.1.0}]\n", "requirements.lock", "dependencies: [{name: b, version: 0.1.7}]\n"},
			want: "b@0.1.7", warnings: stale},
		{name: "case 44: four without a lock", files: []string{"Chart.yaml", minimal + four}, want: "helmchart@0.1.0 helmchart@0.1.0:aliased grafana@>=5.7.0 podinfo@6.1.*"},
		{name: "conditions and tags make no difference", files: []string{"Chart.yaml", minimal + "dependencies: [{name: a, version: '1', condition: a.enabled, tags: [x]}]\n"}, want: "a@1"},
		{name: "vendored under its own name, for an alias too", files: []string{"Chart.yaml", minimal + four, "charts/h/Chart.yaml", withVersion("helmchart", "0.1.0")}, want: "grafana@>=5.7.0 podinfo@6.1.*"},
		{name: "vendored under the alias", files: []string{"Chart.yaml", minimal + four, "charts/h/Chart.yaml", withVersion("aliased", "0.1.0")}, want: "helmchart@0.1.0 grafana@>=5.7.0 podinfo@6.1.*"},
		{name: "as many vendored as required, but others", files: []string{"Chart.yaml", minimal + "dependencies: [{name: a, version: '1'}]\n", "charts/b/Chart.yaml", subchart("b")}, want: "a@1"},
		{name: "vendored in another version", files: []string{"Chart.yaml", minimal + "dependencies: [{name: a, version: ^2}]\n", "charts/a/Chart.yaml", subchart("a")},
			warnings: "the chart contains 'a' in version 1.0.0, but requires '^2'"},
		{name: "one of two versions vendored", files: []string{"Chart.yaml", minimal + "dependencies: [{name: a, version: ^1, alias: old}, {name: a, version: ^2}]\n", "charts/a/Chart.yaml", subchart("a")}, want: "a@^2"},
		{name: "both versions vendored", files: []string{"Chart.yaml", minimal + "dependencies: [{name: a, version: ^1, alias: old}, {name: a, version: ^2, alias: new}]\n",
			"charts/a1/Chart.yaml", subchart("a"), "charts/a2/Chart.yaml", withVersion("a", "2.1.0")}},
		{name: "two versions locked", files: []string{"Chart.yaml", minimal + "dependencies: [{name: a, version: ^1, alias: old}, {name: a, version: ^2, alias: new}]\n",
			"Chart.lock", "dependencies: [{name: a, version: 1.5.0}, {name: a, version: 2.5.0}]\n"}, want: "a@1.5.0 a@2.5.0", warnings: stale},
		{name: "no version asked for", files: []string{"Chart.yaml", minimal + "dependencies: [{name: a}]\n", "charts/a/Chart.yaml", subchart("a")}},
		{name: "no constraint", files: []string{"Chart.yaml", minimal + "dependencies: [{name: a, version: invalid}]\n", "charts/a/Chart.yaml", subchart("a")}, warnings: "the chart contains 'a' in version 1.0.0, but requires 'invalid'"},
		{name: "null in the lock", files: []string{"Chart.yaml", minimal, "Chart.lock", "dependencies: [null]\n"}, warnings: stale},
	} {
		t.Run(tt.name, func(t *testing.T) {
			missing, warnings := Missing(load(t, filesOf("podinfo", tt.files...)...))
			if got := wanted(missing); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if got := strings.Join(warnings, "; "); got != tt.warnings {
				t.Errorf("got warnings %q, want %q", got, tt.warnings)
			}
		})
	}
}

// Helm wrote this digest.
func TestLockIsCurrent(t *testing.T) {
	alpine := func(version string) []*helmchart.Dependency {
		return []*helmchart.Dependency{{Name: "alpine", Version: version, Repository: "http://localhost:8879/charts"}}
	}
	c := &helmchart.Chart{
		Metadata: &helmchart.Metadata{APIVersion: "v2", Dependencies: alpine("0.1.0")},
		Lock:     &helmchart.Lock{Dependencies: alpine("0.1.0"), Digest: "sha256:fb239e836325c5fa14b29d1540a13b7d3ba13151b67fe719f820e0ef6d66aaaf"},
	}
	if !lockIsCurrent(c) {
		t.Error("not current")
	}
	c.Metadata.Dependencies = alpine("0.2.0")
	if lockIsCurrent(c) {
		t.Error("current with another requirement")
	}
	c.Metadata.Dependencies, c.Lock.Dependencies = alpine("0.1.0"), alpine("0.2.0")
	if lockIsCurrent(c) {
		t.Error("current with another locked version")
	}
	c.Lock.Digest = jsonDigest(map[string][]*helmchart.Dependency{"dependencies": c.Metadata.Dependencies})
	if lockIsCurrent(c) {
		t.Error("Helm 2's digest counts in a chart of API version 2")
	}
	c.Metadata.APIVersion = "v1"
	if !lockIsCurrent(c) {
		t.Error("Helm 2's digest does not count in a chart of API version 1")
	}
}

func TestCheckRepository(t *testing.T) {
	for repository, want := range map[string]string{
		"https://example.com/charts": "", "http://example.com": "", "oci://example.com": "", // what follows is for the fetcher to judge
		"@fantastic-charts":                     "aliased repository dependency is not supported: @fantastic-charts/", // §12 case 46
		"@fantastic-charts/":                    "aliased repository dependency is not supported: @fantastic-charts/",
		"alias:fantastic-charts":                "invalid dependency repository URL: alias:fantastic-charts/",
		"ftp://example.com/charts/":             "invalid dependency repository URL: ftp://example.com/charts/",
		"example.com/charts":                    "invalid dependency repository URL: example.com/charts/",
		"ftp://u:s3cret@example.com/a?t=s3cret": "invalid dependency repository URL: ftp://example.com/a?REDACTED",
		"alias:u:s3cret@example.com":            "invalid dependency repository URL: alias:REDACTED",
		"ftp://u:s3cret@exa mple":               "invalid dependency repository URL: ftp:REDACTED/",
		"ftp://u:%s3cret@example.com":           "invalid dependency repository URL: ftp:REDACTED/",
	} {
		got := ""
		if err := CheckRepository(repository); err != nil {
			got = err.Error()
		}
		if strings.TrimSuffix(got, "/") != strings.TrimSuffix(want, "/") {
			t.Errorf("%s: got %q, want %q", repository, got, want)
		}
		if strings.Contains(got, "s3cret") {
			t.Errorf("%s: tells the secret", repository)
		}
	}
}

func TestIsLocal(t *testing.T) {
	for repository, want := range map[string]bool{"": true, "file://../a": true, "file:../a": false, "https://example.com": false, "@a": false} {
		if got := IsLocal(&helmchart.Dependency{Repository: repository}); got != want {
			t.Errorf("%q: got %t", repository, got)
		}
	}
}

func TestLocalPath(t *testing.T) {
	for _, tt := range []struct{ chart, name, repository, want string }{
		{"chart", "dep", "file://../dep", "dep"}, // §12 case 47
		{"chart", "dep", "file:///../../dep", "dep"},
		{"chart", "dep", "file://../../../../dep", "dep"},
		{"charts/umbrella", "dep", "file://../dep", "charts/dep"},
		{"charts/umbrella", "dep", "file://sub/dep", "charts/umbrella/sub/dep"},
		{"charts/umbrella", "dep", "file:///sub/dep", "charts/umbrella/sub/dep"},
		{"charts/umbrella", "dep", "file://../..", "."},
		{".", "dep", "file://dep", "dep"},
		{"chart", "dep", "", "chart/charts/dep"},
		{"chart", "../../../dep", "", "dep"},
		{"chart", "dep", ": //example.com", "failed to parse alleged local chart reference: missing protocol scheme"},
		{"chart", "dep", "https://u:s3cret@example.com", "'https://example.com' is not a local chart reference"},
	} {
		got, err := localPath(tt.chart, &helmchart.Dependency{Name: tt.name, Repository: tt.repository})
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s of %s: got %q, want %q", tt.repository, tt.chart, got, tt.want)
		}
	}
}

func TestLocal(t *testing.T) {
	s := source(t,
		"helmchart/Chart.yaml", withVersion("helmchart", "0.1.0"),
		"helmchartwithdeps/Chart.yaml", withVersion("helmchartwithdeps", "0.1.0"),
		"helmchartwithdeps/charts/inner/Chart.yaml", withVersion("inner", "0.1.0"),
		"packed.tgz", string(archive(t, filesOf("p", "Chart.yaml", withVersion("packed", "1.2.3"))...)),
		"empty.tgz", string(archive(t)),
		"a/Chart.yaml", withVersion("a", "0.1.0")+"dependencies: [{name: b, version: '*', repository: 'file://../b'}]\n",
		"b/Chart.yaml", withVersion("b", "0.1.0")+"dependencies: [{name: c, version: '*', repository: 'file://../c'}, {name: x, repository: 'file://../nowhere'}]\n",
		"c/Chart.yaml", withVersion("c", "0.1.0")+"dependencies: [{name: a, version: '*', repository: 'file://../a'}]\n",
		"d/Chart.yaml", withVersion("d", "0.1.0")+"dependencies: [{name: a, version: '*', repository: 'file://../a'}]\n",
	)
	for _, tt := range []struct{ name, chart, dep, version, repository, want string }{
		{"directory", "helmchartwithdeps", "helmchart", "0.1.0", "file://../helmchart", "helmchart 0.1.0"},
		{"archive", "helmchartwithdeps", "packed", "^1", "file://../packed.tgz", "packed 1.2.3"},
		{"below charts", "helmchartwithdeps", "inner", ">=0.1.0", "", "inner 0.1.0"},
		{"case 45: version", "helmchartwithdeps", "helmchart", "0.2.0", "file://../helmchart", "failed to add local dependency 'helmchart': can't get a valid version for constraint '0.2.0'"},
		{"case 45: escape", "helmchartwithdeps", "x", "*", "file://../../../absolutely/invalid", "failed to add local dependency 'x': no chart found at '/absolutely/invalid' (reference 'file://../../../absolutely/invalid')"},
		{"case 45: empty archive", "helmchartwithdeps", "x", "*", "file://../empty.tgz", "failed to add local dependency 'x': failed to load chart from '/empty.tgz' (reference 'file://../empty.tgz'): no 'Chart.yaml' found"},
		{"case 45: constraint", "helmchartwithdeps", "helmchart", "invalid", "file://../helmchart", "failed to add local dependency 'helmchart': invalid version/constraint format 'invalid': improper constraint"},
		{"no constraint", "helmchartwithdeps", "helmchart", "", "file://../helmchart", "failed to add local dependency 'helmchart': invalid version/constraint format '': improper constraint"},
		{"case 45: missing below charts", "helmchartwithdepsnorepo", "nonexistingchart", "*", "", "failed to add local dependency 'nonexistingchart': no chart found at '/helmchartwithdepsnorepo/charts/nonexistingchart' (reference '')"},
		{"itself", "helmchart", "me", "*", "file://.", "failed to add local dependency 'me': dependency cycle: '/helmchart' -> '/helmchart'"},
		{"circle", "a", "b", "*", "file://../b", "failed to add local dependency 'b': dependency cycle: '/a' -> '/b' -> '/c' -> '/a'"},
		{"a circle of others is left alone", "d", "a", "*", "file://../a", "a 0.1.0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := s.Local(tt.chart, &helmchart.Dependency{Name: tt.dep, Version: tt.version, Repository: tt.repository})
			got := fmt.Sprint(err)
			if err == nil {
				got = c.Name() + " " + c.Metadata.Version
			}
			if !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestVendor(t *testing.T) {
	c := load(t, filesOf("podinfo", "Chart.yaml", minimal+"dependencies: [{name: z, version: '*', alias: first}, {name: a, version: '*'}, {name: z, version: '*', alias: third}, {name: b, version: '*'}]\n",
		"charts/a/Chart.yaml", subchart("a"), "charts/zz/Chart.yaml", subchart("zz"))...)
	shared := load(t, filesOf("z", "Chart.yaml", subchart("z"), "templates/t.yaml", "name: {{ .Chart.Name }}\n", "charts/deep/Chart.yaml", subchart("deep"), "charts/deep/templates/t.yaml", "x: y\n")...)
	missing, _ := Missing(c)
	if got, want := wanted(missing), "z@*:first z@*:third b@*"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	Vendor(c, missing, []*helmchart.Chart{shared, shared, load(t, filesOf("b", "Chart.yaml", subchart("other"))...)})
	if got, want := names(c.Dependencies()), "first a third b zz"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if shared.Name() != "z" || !shared.IsRoot() {
		t.Error("the shared chart was changed")
	}
	again, err := Load(bytes.NewReader(packaged(t, c)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(again.Dependencies()), "first a third b zz"; got != want {
		t.Errorf("after packaging: got %s, want %s", got, want)
	}
	want := map[string]string{
		"podinfo/charts/first/templates/t.yaml": "name: first\n", "podinfo/charts/third/templates/t.yaml": "name: third\n",
		"podinfo/charts/first/charts/deep/templates/t.yaml": "x: y\n", "podinfo/charts/third/charts/deep/templates/t.yaml": "x: y\n",
	}
	if got := render(t, again); !reflect.DeepEqual(got, want) {
		t.Errorf("renders %q", got)
	}
	if err := chartutil.ProcessDependenciesWithMerge(again, again.Values); err != nil {
		t.Error(err)
	}
}

// Locked dependencies are vendored under their own names; Helm itself gives them their aliases when it renders.
func TestVendorLocked(t *testing.T) {
	c := load(t, filesOf("podinfo", "Chart.yaml", minimal+"dependencies: [{name: m, version: ^1, alias: old}, {name: m, version: ^2, alias: new}]\n",
		"Chart.lock", "dependencies: [{name: m, version: 1.5.0}, {name: m, version: 2.5.0}]\n")...)
	missing, _ := Missing(c)
	Vendor(c, missing, []*helmchart.Chart{
		load(t, filesOf("m", "Chart.yaml", withVersion("m", "1.5.0"), "templates/t.yaml", "{{ .Chart.Name }} {{ .Chart.Version }}")...),
		load(t, filesOf("m", "Chart.yaml", withVersion("m", "2.5.0"), "templates/t.yaml", "{{ .Chart.Name }} {{ .Chart.Version }}")...),
	})
	again, err := Load(bytes.NewReader(packaged(t, c)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"podinfo/charts/old/templates/t.yaml": "old 1.5.0", "podinfo/charts/new/templates/t.yaml": "new 2.5.0"}
	if got := render(t, again); !reflect.DeepEqual(got, want) {
		t.Errorf("renders %q", got)
	}
}
