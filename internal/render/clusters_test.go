package render

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// TestClusters divides repositories that do not name their clusters.
func TestClusters(t *testing.T) {
	twice := map[string]string{
		"one/repo.yaml": strings.Replace(aRepository, "%s", "one", 1),
		"two/repo.yaml": strings.Replace(aRepository, "%s", "two", 1),
	}
	for _, test := range []struct {
		name     string
		files    map[string]string
		clusters []string
		objects  [][]string // of each
	}{
		{"one", map[string]string{"a/x.yaml": fluxOf("x", "./one", ""), "b/x.yaml": fluxOf("x", "./one", ""), "c/y.yaml": fluxOf("z", "./two", "")},
			nil, [][]string{{"apps/one", "apps/two"}}},
		{"one, with a source in a file of its own", map[string]string{
			"a/x.yaml": fluxOf("x", "./one", ""), "b/x.yaml": fluxOf("x", "./one", ""), "a/s.yaml": strings.Replace(aRepository, "%s", "three", 1),
		}, nil, [][]string{{"apps/one", "apps/three", "apps/two"}}},
		{"two, with one source each", map[string]string{
			"a/x.yaml": fluxOf("x", "./one", ""), "a/s.yaml": strings.Replace(aRepository, "%s", "three", 1),
			"b/x.yaml": fluxOf("x", "./one", ""), "b/s.yaml": strings.Replace(aRepository, "%s", "three", 1),
		}, []string{"a", "b"}, [][]string{{"apps/one", "apps/three", "apps/two"}, {"apps/one", "apps/three", "apps/two"}}},
		{"two", map[string]string{"a/x.yaml": fluxOf("x", "./one", ""), "b/x.yaml": fluxOf("x", "./two", "")},
			[]string{"a", "b"}, [][]string{{"apps/one"}, {"apps/two"}}},
		{"three, in directories of their own", map[string]string{
			"a/apps/x.yaml": fluxOf("x", "./one", ""), "a/infra/y.yaml": fluxOf("z", "./two", "  suspend: false\n"),
			"b/apps/x.yaml": fluxOf("x", "./one", "  wait: true\n"), "b/infra/y.yaml": fluxOf("z", "./one", ""),
			"c/apps/x.yaml": fluxOf("x", "./two", ""),
		}, []string{"a/apps", "b/apps", "c/apps"}, [][]string{{"apps/one", "apps/two"}, {"apps/one"}, {"apps/two"}}},
		{"what is in one alone, and what is in none", map[string]string{
			"a/x.yaml": fluxOf("x", "./one", ""), "b/x.yaml": fluxOf("x", "./one", "  wait: true\n"), "b/more.yaml": fluxOf("z", "./two", ""),
			"c/kustomization.yaml": "resources: [repo.yaml]\n", "c/repo.yaml": strings.Replace(aRepository, "%s", "three", 1),
		}, []string{"a", "b"}, [][]string{{"apps/one", "apps/three"}, {"apps/one", "apps/three", "apps/two"}}},
	} {
		dir := t.TempDir()
		write(t, dir, twice)
		write(t, dir, test.files)
		in := manifest.Read(t.Context(), manifest.Options{Files: []string{dir}, Recursive: true})
		clusters := New(t.Context(), in, Options{Namespace: "default"}).Clusters()
		var dirs []string
		for i, c := range clusters {
			set, errs := in.Set(c.Build().Build)
			got := names(set)
			slices.Sort(got)
			if i >= len(test.objects) || !slices.Equal(got, test.objects[i]) || len(errs) > 0 {
				t.Errorf("%s: cluster %d has %v, want %v, %v", test.name, i+1, got, test.objects, errs)
			}
			if rel, _ := filepath.Rel(dir, c.Dir); len(clusters) > 1 {
				dirs = append(dirs, filepath.ToSlash(rel))
			}
		}
		if !slices.Equal(dirs, test.clusters) {
			t.Errorf("%s: clusters %v, want %v", test.name, dirs, test.clusters)
		}
	}
}
