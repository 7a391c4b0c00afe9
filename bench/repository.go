//go:build bench

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The repositories of a fleet: apps with a Kustomization each, and clusters that share apps.

// apps validates a whole repository of one cluster.
func apps() []contender {
	return repositories(func(j *job) ([]string, error) {
		return []string{"validate", "-R", "-f", "."}, writeApps(j.work, j.scale.Apps)
	})
}

// namespaced validates a repository in the most common layout: directories of namespaces, a Kustomization for each app, and
// one above them that patches them all.
func namespaced() []contender {
	return repositories(func(j *job) ([]string, error) {
		return []string{"validate", "-R", "-f", "."}, writeNamespaces(j.work, j.scale.Apps)
	})
}

// home validates a repository as large as the largest home repositories: its apps share components with volumes, and have
// configuration files.
func home() []contender {
	return repositories(func(j *job) ([]string, error) {
		return []string{"validate", "-R", "-f", "."}, writeHome(j.work, j.scale.HomeApps)
	})
}

// changed validates one file of a repository, as a hook does.
func changed() []contender {
	return repositories(func(j *job) ([]string, error) {
		return []string{"validate", "--lookup-dir", ".", filepath.FromSlash("apps/app-0001/app/release.yaml")}, writeApps(j.work, j.scale.HookApps)
	})
}

// fleet validates clusters with the same apps, each with its own patch.
func fleet() []contender {
	return repositories(func(j *job) ([]string, error) {
		return []string{"validate", "-R", "-f", "."}, writeFleet(j.work, j.scale.Clusters, j.scale.ClusterApps)
	})
}

func repositories(args func(j *job) ([]string, error)) []contender {
	return []contender{
		{name: "helmsrc validate", tool: "helmsrc", args: args},
		{name: "helmsrc validate (before)", tool: "before", args: args},
	}
}

func writeApps(root string, count int) error {
	files := map[string]string{
		".git/HEAD":                          "ref: refs/heads/main\n",
		"cluster/flux-system/gotk-sync.yaml": syncOf("./cluster"),
		"cluster/apps.yaml":                  kustomizationOf("apps", "./apps"),
	}
	for i := range count {
		name := fmt.Sprintf("app-%04d", i)
		files["apps/"+name+"/ks.yaml"] = kustomizationOf(name, "./apps/"+name+"/app")
		files["apps/"+name+"/kustomization.yaml"] = "resources: [ks.yaml]\n"
		files["apps/"+name+"/app/kustomization.yaml"] = "namespace: apps\nresources: [release.yaml]\n"
		files["apps/"+name+"/app/release.yaml"] = appOf(name)
	}
	return writeFiles(root, files)
}

// appsOfNamespace is the number of apps in a namespace.
const appsOfNamespace = 100

func writeNamespaces(root string, count int) error {
	patch := "  patches:\n  - target: {group: kustomize.toolkit.fluxcd.io, kind: Kustomization}\n    patch: |\n" +
		"      apiVersion: kustomize.toolkit.fluxcd.io/v1\n      kind: Kustomization\n      metadata: {name: any}\n      spec:\n" +
		"        patches:\n        - target: {group: helm.toolkit.fluxcd.io, kind: HelmRelease}\n          patch: |\n" +
		"            apiVersion: helm.toolkit.fluxcd.io/v2\n            kind: HelmRelease\n            metadata: {name: any}\n" +
		"            spec: {install: {crds: CreateReplace}, upgrade: {remediation: {retries: 2}}}\n"
	files := map[string]string{
		".git/HEAD":                            "ref: refs/heads/main\n",
		"cluster/flux-system/gotk-sync.yaml":   syncOf("./cluster"),
		"cluster/apps.yaml":                    kustomizationOf("cluster-apps", "./apps") + patch,
		"components/common/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [settings.yaml]\n",
		"components/common/settings.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {DOMAIN: example.org}\n",
	}
	for i := range count {
		name, namespace := fmt.Sprintf("app-%04d", i), fmt.Sprintf("namespace-%02d", i/appsOfNamespace)
		dir := "apps/" + namespace + "/"
		if i%appsOfNamespace == 0 {
			files[dir+"namespace.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata: {name: any}\n"
			files[dir+"kustomization.yaml"] = "namespace: " + namespace + "\ncomponents: [../../components/common]\nresources:\n- namespace.yaml\n"
		}
		files[dir+"kustomization.yaml"] += "- " + name + "/ks.yaml\n"
		files[dir+name+"/ks.yaml"] = strings.ReplaceAll(kustomizationOf(name, "./apps/"+namespace+"/"+name+"/app"), ", namespace: flux-system}\nspec:", "}\nspec:") +
			"  targetNamespace: " + namespace + "\n  postBuild:\n    substitute: {APP: " + name + "}\n    substituteFrom: [{kind: ConfigMap, name: settings}]\n"
		files[dir+name+"/ks.yaml"] = strings.Replace(files[dir+name+"/ks.yaml"], "name: flux-system}", "name: flux-system, namespace: flux-system}", 1)
		files[dir+name+"/app/kustomization.yaml"] = "resources: [release.yaml]\n"
		files[dir+name+"/app/release.yaml"] = strings.ReplaceAll(appOf(name), "repository: ghcr.io/example/app", `repository: "ghcr.io/example/${APP}", host: "${APP}.${DOMAIN}"`)
	}
	return writeFiles(root, files)
}

// writeHome adds components, volumes and configuration files to the layout of writeNamespaces.
func writeHome(root string, count int) error {
	if err := writeNamespaces(root, count); err != nil {
		return err
	}
	volume := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: \"${APP}\"}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: \"${CAPACITY:=5Gi}\"}}}\n"
	backup := "apiVersion: volsync.backube/v1alpha1\nkind: ReplicationSource\nmetadata: {name: \"${APP}\"}\nspec: {sourcePVC: \"${APP}\", trigger: {schedule: 0 * * * *}, restic: {repository: \"${APP}-volsync\"}}\n"
	files := map[string]string{
		"components/volsync/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [claim.yaml, backup.yaml]\n",
		"components/volsync/claim.yaml":         volume,
		"components/volsync/backup.yaml":        backup,
	}
	for i := range count {
		dir := fmt.Sprintf("apps/namespace-%02d/app-%04d/app/", i/appsOfNamespace, i)
		files[dir+"kustomization.yaml"] = "components: [../../../../components/volsync]\nresources: [release.yaml]\nconfigMapGenerator:\n- {name: '${APP}', files: [config.yaml]}\ngeneratorOptions: {disableNameSuffixHash: true}\n"
		files[dir+"config.yaml"] = strings.Repeat("key: value\n", 40)
	}
	return writeFiles(root, files)
}

func writeFleet(root string, clusters, count int) error {
	files := map[string]string{".git/HEAD": "ref: refs/heads/main\n"}
	for i := range count {
		files[fmt.Sprintf("apps/app-%02d/base/kustomization.yaml", i)] = "namespace: apps\nresources: [release.yaml]\n"
		files[fmt.Sprintf("apps/app-%02d/base/release.yaml", i)] = appOf(fmt.Sprintf("app-%02d", i))
	}
	for c := range clusters {
		cluster := fmt.Sprintf("cluster-%02d", c)
		files["clusters/"+cluster+"/flux-system/gotk-sync.yaml"] = syncOf("./clusters/" + cluster)
		for i := range count {
			name := fmt.Sprintf("app-%02d", i)
			files["clusters/"+cluster+"/"+name+".yaml"] = kustomizationOf(name, "./apps/"+name+"/"+cluster)
			files["apps/"+name+"/"+cluster+"/kustomization.yaml"] = "resources: [../base]\npatches:\n- path: patch.yaml\n"
			files["apps/"+name+"/"+cluster+"/patch.yaml"] = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: " + name +
				"}\nspec: {values: {cluster: " + cluster + "}}\n"
		}
	}
	return writeFiles(root, files)
}

func writeFiles(root string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func syncOf(path string) string {
	return `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, url: "https://git.example.org/fleet", ref: {branch: main}}
---
` + kustomizationOf("flux-system", path)
}

func kustomizationOf(name, path string) string {
	return fmt.Sprintf(`apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s, namespace: flux-system}
spec:
  interval: 1h
  path: %s
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
`, name, path)
}

func appOf(name string) string {
	return strings.ReplaceAll(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: NAME}
spec:
  interval: 1h
  chartRef: {kind: OCIRepository, name: NAME}
  values: {image: {repository: ghcr.io/example/app, tag: v1.2.3}, service: {main: {ports: {http: {port: 8080}}}}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: NAME}
spec: {interval: 1h, url: "oci://ghcr.io/example/charts/app", ref: {tag: 1.2.3}}
`, "NAME", name)
}
