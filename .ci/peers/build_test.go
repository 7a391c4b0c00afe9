// Package peers compares what helmsrc builds of a repository with what flux and kustomize build of it. The three programs are
// those of the PATH.
package peers

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"
)

const top = "../.."

// differ has what flux does not build as helmsrc does, and why.
var differ = map[string][]string{
	// flux is given a Kustomization by its file, and not by what builds this file: a variable in its own path stays one.
	"included": {"missing: HelmRepository apps/${CLUSTER}-charts", "too much: HelmRepository apps/home-charts"},
	// helmsrc says that two Kustomizations define it.
	"scattered": {"missing: HelmRelease apps/twin"},
	// The artifact of a source lacks what .sourceignore and spec.ignore name. flux builds the directory as it is.
	"ignored": {"missing: HelmRepository apps/listed", "missing: HelmRepository apps/spec", "missing: HelmRepository apps/whole"},
	// kustomize refuses a field that it does not know. kustomize-controller reads and writes the file before, which drops it.
	"unknown": {"plain: ./apps/web"},
	// The source is made by Flux Operator of a FluxInstance, which flux does not know.
	"instance":           {"too much: GitRepository flux-system/flux-system"},
	"instance_elsewhere": {"too much: GitRepository flux-system/flux-system"},
	// The cluster's directory has values of Helm beside manifests, with which flux builds nothing. helmsrc leaves them out,
	// since no Kustomization leads there.
	"instance_values": {"too much: HelmRelease apps/podinfo", "too much: OCIRepository apps/podinfo"},
	// A Kustomization is of another branch of the repository, whatever lies here at its path.
	"ref": {"missing: HelmChart apps/podinfo"},
}

// defaults are the fields that the API server adds.
var defaults = map[string]any{"provider": "generic", "reconcileStrategy": "ChartVersion", "timeout": "60s", "version": "*"}

// fixture matches an entry of repositoryFixtures of the program's own tests.
var fixture = regexp.MustCompile(`\{"([a-z_]+)", "([a-z]+)", \[\]string\{(.*)\}\},`)

type object struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Spec     map[string]any
	Data     map[string]any
}

func (o object) namespace() string { return cmp.Or(o.Metadata.Namespace, "default") }

func (o object) key() string { return o.Kind + " " + o.namespace() + "/" + o.Metadata.Name }

func TestBuild(t *testing.T) {
	list, err := os.ReadFile(top + "/test/program/repositories_test.go")
	if err != nil {
		t.Fatal(err)
	}
	fixtures := fixture.FindAllStringSubmatch(string(list), -1)
	if len(fixtures) < 10 {
		t.Fatalf("%d fixtures were found", len(fixtures))
	}
	for _, f := range fixtures {
		for cluster := range strings.SplitSeq(f[3], ", ") {
			cluster = strings.Trim(cluster, `"`)
			t.Run(f[1]+"/"+cluster, func(t *testing.T) {
				dir := unpack(t, f[1], f[2])
				want, found := ofFlux(t, dir, cluster)
				found = append(found, compare(want, ofHelmsrc(t, dir, cluster))...)
				if !slices.Equal(found, differ[f[1]]) {
					t.Errorf("%q differ, want %q", found, differ[f[1]])
				}
			})
		}
	}
}

func unpack(t *testing.T, name, root string) string {
	t.Helper()
	archive, err := txtar.ParseFile(top + "/testdata/script/validate_repository_" + name + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	parent := t.TempDir()
	for _, file := range append(archive.Files, txtar.File{Name: root + "/.git/HEAD"}) {
		at := filepath.Join(parent, file.Name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(parent, root)
}

// run returns the objects that a program prints. What it could not build is in its log.
func run(t *testing.T, dir string, args ...string) ([]object, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	// Nothing is asked of a network or a cluster.
	cmd.Env = append(os.Environ(), "HTTPS_PROXY=http://127.0.0.1:9", "HTTP_PROXY=http://127.0.0.1:9", "KUBECONFIG="+os.DevNull, "HOME="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Logf("%s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	var objects []object
	for doc := range bytes.SplitSeq(append([]byte("\n"), out...), []byte("\n---\n")) {
		var o object
		if err := yaml.Unmarshal(doc, &o); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, doc)
		}
		if o.Kind != "" {
			objects = append(objects, o)
		}
	}
	return objects, err
}

// ofFlux returns the sources and releases that flux builds of a cluster: first its directory, then what each Kustomization
// that comes out leads to; and the directories of which kustomize builds something else, as "plain: PATH".
func ofFlux(t *testing.T, dir, cluster string) (built map[string]map[string]any, differ []string) {
	t.Helper()
	root := object{Kind: "Kustomization", Spec: map[string]any{"path": cluster, "interval": "1h", "prune": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "root"}}}
	root.Metadata.Name, root.Metadata.Namespace = "root", "root"
	built = map[string]map[string]any{}
	values := map[string]map[string]any{} // of ConfigMaps
	seen := map[string]bool{}
	for queue := []object{root}; len(queue) > 0; queue = queue[1:] {
		k := queue[0]
		whole := isPath(k)
		if !inline(k, values) && !seen["late "+k.key()] {
			seen["late "+k.key()] = true
			queue = append(queue, k) // what builds the values may still come
			continue
		}
		objects, err := fluxBuild(t, dir, k)
		if whole && !sameBuild(t, dir, k, objects, err) {
			differ = append(differ, fmt.Sprintf("plain: %s", k.Spec["path"]))
		}
		for _, o := range objects {
			switch {
			case o.Kind == "Kustomization" && !seen[o.key()]:
				seen[o.key()] = true
				queue = append(queue, o)
			case o.Kind == "ConfigMap":
				values[o.namespace()+"/"+o.Metadata.Name] = o.Data
			case slices.Contains(kinds, o.Kind):
				built[o.key()] = o.Spec
			}
		}
	}
	return built, differ
}

var kinds = []string{"Bucket", "GitRepository", "HelmChart", "HelmRelease", "HelmRepository", "OCIRepository"}

// isPath reports whether a Kustomization changes nothing of what is built of its path, which a kustomization.yaml has.
func isPath(k object) bool {
	for _, field := range []string{"patches", "postBuild", "targetNamespace", "components", "images", "namePrefix", "nameSuffix", "commonMetadata"} {
		if k.Spec[field] != nil {
			return false
		}
	}
	return true
}

// inline sets the values of the ConfigMaps that a Kustomization refers to: without a cluster flux reads none. It reports whether
// all were built before.
func inline(k object, values map[string]map[string]any) bool {
	post, _ := k.Spec["postBuild"].(map[string]any)
	from, _ := post["substituteFrom"].([]any)
	all := map[string]any{}
	for _, ref := range from {
		name, _ := ref.(map[string]any)["name"].(string)
		if values[k.namespace()+"/"+name] == nil {
			return false
		}
		maps.Copy(all, values[k.namespace()+"/"+name])
	}
	if from == nil {
		return true
	}
	own, _ := post["substitute"].(map[string]any)
	maps.Copy(all, own)
	k.Spec["postBuild"] = map[string]any{"substitute": all}
	return true
}

func fluxBuild(t *testing.T, dir string, k object) ([]object, error) {
	t.Helper()
	path, _ := k.Spec["path"].(string)
	file := filepath.Join(t.TempDir(), "kustomization.yaml")
	b, err := yaml.Marshal(map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": k.Kind, "spec": k.Spec,
		"metadata": map[string]any{"name": k.Metadata.Name, "namespace": k.Metadata.Namespace},
	})
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return run(t, dir, "flux", "build", "kustomization", k.Metadata.Name, "--namespace="+k.Metadata.Namespace,
		"--path="+filepath.Join(dir, path), "--kustomization-file="+file, "--dry-run", "--in-memory-build")
}

// sameBuild reports whether kustomize makes of the path of a Kustomization what flux made of it. Without a kustomization.yaml
// there is nothing to compare.
func sameBuild(t *testing.T, dir string, k object, objects []object, err error) bool {
	t.Helper()
	path, _ := k.Spec["path"].(string)
	if _, missing := os.Stat(filepath.Join(dir, path, "kustomization.yaml")); missing != nil {
		return true
	}
	plain, plainErr := run(t, dir, "kustomize", "build", path)
	return (plainErr == nil) == (err == nil) && len(compare(specs(plain), specs(objects))) == 0
}

func specs(objects []object) map[string]map[string]any {
	m := map[string]map[string]any{}
	for _, o := range objects {
		m[o.key()] = o.Spec
	}
	return m
}

// ofHelmsrc returns what helmsrc builds, without the HelmCharts that helm-controller makes of HelmReleases.
func ofHelmsrc(t *testing.T, dir, cluster string) map[string]map[string]any {
	t.Helper()
	objects, err := run(t, dir, "helmsrc", "resolve", "-R", "-f", cluster, "-o", "yaml", "--exit-zero")
	if len(objects) == 0 { // what a broken file keeps from being built is no failure of the rest
		t.Fatal(err)
	}
	built := specs(objects)
	for _, o := range objects {
		if chart, _ := o.Spec["chart"].(map[string]any); o.Kind == "HelmRelease" && chart != nil {
			maps.DeleteFunc(built, func(key string, _ map[string]any) bool {
				return strings.HasPrefix(key, "HelmChart ") && strings.HasSuffix(key, "/"+o.namespace()+"-"+o.Metadata.Name)
			})
		}
	}
	return built
}

// compare lists what differs between two sets of objects.
func compare(want, got map[string]map[string]any) (found []string) {
	for key, spec := range want {
		if got[key] == nil && spec != nil {
			found = append(found, "missing: "+key)
		} else {
			found = append(found, compareFields(key, spec, got[key])...)
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			found = append(found, "too much: "+key)
		}
	}
	slices.Sort(found)
	return found
}

func compareFields(at string, want, got map[string]any) (found []string) {
	for name, w := range want {
		g := got[name]
		if wm, ok := w.(map[string]any); ok {
			gm, _ := g.(map[string]any)
			found = append(found, compareFields(at+"."+name, wm, gm)...)
		} else if !reflect.DeepEqual(w, g) {
			found = append(found, at+"."+name+" is not the same")
		}
	}
	for name, g := range got {
		if _, ok := want[name]; !ok && !reflect.DeepEqual(defaults[name], g) {
			found = append(found, at+"."+name+" is too much")
		}
	}
	return found
}
