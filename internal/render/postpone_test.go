package render

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// TestSparing counts what is built for one file: what it takes part in, and what gives the variables of that.
func TestSparing(t *testing.T) {
	const apps = 30
	dir := t.TempDir()
	files := map[string]string{
		"cluster/gotk-sync.yaml": fluxOf("flux-system", "./cluster", ""),
		"cluster/apps.yaml":      fluxOf("apps", "./apps", ""),
		"settings/map.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: flux-system}\ndata: {A: b}\n",
		"apps/settings.yaml":     fluxOf("settings", "./settings", ""),
	}
	for i := range apps {
		name := fmt.Sprintf("app-%02d", i)
		files["apps/"+name+".yaml"] = fluxOf(name, "./releases/"+name, "  postBuild: {substituteFrom: [{kind: ConfigMap, name: settings}]}\n")
		files["releases/"+name+"/repository.yaml"] = strings.Replace(aRepository, "%s", name, 1)
	}
	write(t, dir, files)
	for _, test := range []struct {
		changed string
		sparing bool
		wants   []manifest.Want
		builds  int
	}{
		{"releases/app-07/repository.yaml", false, nil, apps + 3},
		{"releases/app-07/repository.yaml", true, nil, 4}, // with cluster, apps and settings
		{"settings/map.yaml", true, nil, 3},
		{"apps/app-03.yaml", true, nil, 4},
		{"settings/map.yaml", true, []manifest.Want{{Group: manifest.SourceGroup, Kind: "HelmRepository", Name: "app-09"}}, 4},
		{"settings/map.yaml", true, []manifest.Want{{Group: manifest.SourceGroup, Kind: "HelmRepository", Name: "none"}}, apps + 3},
		{"settings/map.yaml", true, []manifest.Want{{Group: manifest.SourceGroup, Kind: "HelmRepository", Name: "none", Found: true}}, 3},
	} {
		in := manifest.Read(t.Context(), manifest.Options{Offered: []string{filepath.Join(dir, test.changed)}, LookupDirs: []string{dir}})
		r := New(t.Context(), in, Options{Namespace: "default", Sparing: test.sparing})
		clusters := r.Clusters()
		if len(clusters) != 1 {
			t.Fatalf("%d clusters", len(clusters))
		}
		clusters[0].Build()
		if clusters[0].Need(test.wants) {
			clusters[0].Build()
		}
		if len(r.builds) != test.builds {
			t.Errorf("%s: %d builds, want %d", test.changed, len(r.builds), test.builds)
		}
	}
}
