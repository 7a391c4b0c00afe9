package locking

import "testing"

// TestInFetched checks that files of fetched sources are recognised by their names, and files of the working directory are not.
func TestInFetched(t *testing.T) {
	for name, want := range map[string]bool{
		"GitRepository/flux-system/apps/deploy/app.yaml": true,
		"OCIRepository/flux-system/apps/app.yaml":        true,
		"HelmChart/apps/app/Chart.yaml":                  true,
		"GitRepository/flux-system/apps":                 false, // the source, and no file of it
		"clusters/east/apps/app.yaml":                    false,
		"Kustomization/flux-system/apps/app.yaml":        false,
		"": false,
	} {
		if inFetched(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}
