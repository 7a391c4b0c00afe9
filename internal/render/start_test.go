package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestStarts builds clusters with starts that a build leads to: by a parent that patches them, by themselves, by a directory.
// The objects of the unpatched starts are gone, and the names of files, which decide the order of builds, do not matter.
func TestStarts(t *testing.T) {
	const (
		map1   = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: flux-system}\ndata: {NAME: from-map}\n"
		values = "  postBuild: {substitute: {NAME: %q}}\n"
	)
	patchOf := func(name, spec string) string {
		return fmt.Sprintf("{target: {kind: Kustomization, name: %s}, patch: '{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: %[1]s}, spec: %s}'}", name, spec)
	}
	repo := strings.Replace(aRepository, "%s", `"${NAME}"`, 1)
	for _, test := range []struct {
		name    string
		files   map[string]string // in which A and Z are directories
		objects []string
	}{
		{"a parent gives a Kustomization its source, and patches what that applies", map[string]string{
			"Z/top.yaml":               fluxOf("top", "./Z/top", ""),
			"Z/top/apps.yaml":          "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\nspec: {path: ./A, patches: [" + patchOf("app", "{postBuild: {substitute: {NAME: patched}}}") + "]}\n",
			"Z/top/kustomization.yaml": "resources: [apps.yaml]\npatches:\n- " + patchOf("apps", "{interval: 1h, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}") + "\n",
			"A/app.yaml":               fluxOf("app", "./deep", fmt.Sprintf(values, "written")),
			"deep/repo.yaml":           repo,
		}, []string{"apps/patched"}},
		{"a Kustomization patches itself, after what it applies", map[string]string{
			"A/gotk-sync.yaml":     fluxOf("flux-system", "./A", ""),
			"A/a.yaml":             fluxOf("a", "./one", fmt.Sprintf(values, "${NAME:=unset}")),
			"A/z.yaml":             fluxOf("z", "./two", ""),
			"A/kustomization.yaml": "resources: [a.yaml, gotk-sync.yaml, z.yaml]\npatches:\n- " + patchOf("flux-system", "{postBuild: {substitute: {NAME: its-own}}}") + "\n",
			"one/repo.yaml":        repo,
			"two/repo.yaml":        strings.Replace(aRepository, "%s", "two", 1),
		}, []string{"apps/its-own", "apps/two"}},
		{"a Kustomization gets variables of a map that comes with itself", map[string]string{
			"A/gotk-sync.yaml":     fluxOf("flux-system", "./A", ""),
			"A/a.yaml":             fluxOf("a", "./one", fmt.Sprintf(values, "${NAME:=unset}")),
			"A/map.yaml":           map1,
			"A/kustomization.yaml": "resources: [a.yaml, map.yaml, gotk-sync.yaml]\npatches:\n- " + patchOf("flux-system", "{postBuild: {substituteFrom: [{kind: ConfigMap, name: settings}]}}") + "\n",
			"one/repo.yaml":        repo,
		}, []string{"apps/from-map"}},
		{"a directory holds the Kustomization that builds it", map[string]string{
			"A/kustomization.yaml": "resources: [self.yaml, repo.yaml]\npatches:\n- " + patchOf("self", "{sourceRef: {kind: GitRepository, name: fleet}, path: ./A, interval: 1h, prune: true, postBuild: {substitute: {NAME: known}}}") + "\n",
			"A/self.yaml":          "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: self, namespace: flux-system}\nspec: {}\n",
			"A/repo.yaml":          repo,
		}, []string{"apps/known"}},
	} {
		for _, turn := range [][2]string{{"a", "z"}, {"z", "a"}} {
			dir := t.TempDir()
			files := map[string]string{}
			for name, text := range test.files {
				named := strings.NewReplacer("A/", turn[0]+"/", "Z/", turn[1]+"/", "./A", "./"+turn[0], "./Z", "./"+turn[1])
				files[named.Replace(name)] = named.Replace(text)
			}
			write(t, dir, files)
			set, result, errs := load(t.Context(), dir, Options{Namespace: "default"})
			got := names(set)
			slices.Sort(got)
			if !slices.Equal(got, test.objects) || len(errs) > 0 || len(result.Notices) > 0 || len(result.Rejections) > 0 {
				t.Errorf("%s, %v: %q, want %q; %v %+v", test.name, turn, got, test.objects, errs, result.Notices)
			}
			for _, o := range set.Objects() {
				if !strings.HasPrefix(o.Built, "Kustomization ") {
					t.Errorf("%s, %v: %s is of %q", test.name, turn, o, o.Built)
				}
			}
		}
	}
}
