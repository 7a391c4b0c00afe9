package render

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// addressFields are the fields of a kustomization, and of files that it names, that may contain a path or an address. %[1]s is
// the address, %[2]s the address in base64.
var addressFields = []struct {
	name, kustomization string
	files               map[string]string
}{
	{"resources", "resources: [repo.yaml, '%[1]s']", nil},
	{"bases", "resources: [repo.yaml]\nbases: ['%[1]s']", nil},
	{"components", "resources: [repo.yaml]\ncomponents: ['%[1]s']", nil},
	{"crds", "resources: [repo.yaml]\ncrds: ['%[1]s']", nil},
	{"configurations", "resources: [repo.yaml]\nconfigurations: ['%[1]s']", nil},
	{"openapi", "resources: [repo.yaml]\nopenapi: {path: '%[1]s'}", nil},
	{"patches", "resources: [repo.yaml]\npatches: [{path: '%[1]s', target: {kind: HelmRepository}}]", nil},
	{"patchesStrategicMerge", "resources: [repo.yaml]\npatchesStrategicMerge: ['%[1]s']", nil},
	{"patchesJson6902", "resources: [repo.yaml]\npatchesJson6902: [{path: '%[1]s', target: {version: v1, kind: HelmRepository, name: a}}]", nil},
	{"replacements", "resources: [repo.yaml]\nreplacements: [{path: '%[1]s'}]", nil},
	{"replacements of a file", "resources: [repo.yaml]\nreplacements: [{path: r.yaml}]", map[string]string{
		"r.yaml": "[{path: '%[1]s'}]"}},
	{"configMapGenerator files", "resources: [repo.yaml]\nconfigMapGenerator: [{name: a, files: ['%[1]s']}]", nil},
	{"configMapGenerator file with a key", "resources: [repo.yaml]\nconfigMapGenerator: [{name: a, files: ['a=%[1]s']}]", nil},
	{"configMapGenerator envs", "resources: [repo.yaml]\nconfigMapGenerator: [{name: a, envs: ['%[1]s']}]", nil},
	{"configMapGenerator env", "resources: [repo.yaml]\nconfigMapGenerator: [{name: a, env: '%[1]s'}]", nil},
	{"secretGenerator files", "resources: [repo.yaml]\nsecretGenerator: [{name: a, files: ['%[1]s']}]", nil},
	{"secretGenerator envs", "resources: [repo.yaml]\nsecretGenerator: [{name: a, envs: ['%[1]s']}]", nil},
	{"secretGenerator env", "resources: [repo.yaml]\nsecretGenerator: [{name: a, env: '%[1]s'}]", nil},
	{"generators", "resources: [repo.yaml]\ngenerators: ['%[1]s']", nil},
	{"transformers", "resources: [repo.yaml]\ntransformers: ['%[1]s']", nil},
	{"validators", "resources: [repo.yaml]\nvalidators: ['%[1]s']", nil},
	{"helmCharts", "resources: [repo.yaml]\nhelmCharts: [{name: a, repo: '%[1]s', version: 1.0.0, valuesFile: '%[1]s', additionalValuesFiles: ['%[1]s']}]", nil},
	{"helmGlobals", "resources: [repo.yaml]\nhelmGlobals: {chartHome: '%[1]s', configHome: '%[1]s'}\nhelmCharts: [{name: a, repo: '%[1]s'}]", nil},
	{"helmChartInflationGenerator", "resources: [repo.yaml]\nhelmChartInflationGenerator: [{chartName: a, chartRepoUrl: '%[1]s', values: '%[1]s'}]", nil},
	{"an address in base64", "resources: [repo.yaml]\nreplacements: [{path: !!binary %[2]s}]", nil},
	{"a resource in base64", "resources: [repo.yaml, !!binary %[2]s]", nil},
	{"a key in base64", "resources: [repo.yaml]\nreplacements: [{!!binary cGF0aA==: '%[1]s'}]", nil},
	{"a key that is an alias", "metadata: {annotations: {a: &k path}}\nresources: [repo.yaml]\nreplacements: [{*k : '%[1]s'}]", nil},
	{"an alias", "metadata: {annotations: {a: &k '%[1]s'}}\nresources: [repo.yaml, *k]\ncrds: [*k]\nreplacements: [{path: *k}]", nil},
	{"a merge", "metadata: {annotations: &k {path: '%[1]s'}}\nresources: [repo.yaml]\nreplacements: [{<<: *k}]", nil},
	{"a kustomization by another name", "resources: [linked]", map[string]string{
		"linked/elsewhere.yaml": "resources: [../repo.yaml]\ncrds: ['%[1]s']\nreplacements: [{path: '%[1]s'}]"}},
	{"a base", "resources: [base]", map[string]string{
		"base/kustomization.yaml": "resources: [../repo.yaml, '%[1]s']\nreplacements: [{path: '%[1]s'}]"}},
	{"a component", "resources: [repo.yaml]\ncomponents: [base]", map[string]string{
		"base/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nreplacements: [{path: '%[1]s'}]\npatches: [{path: '%[1]s'}]"}},
}

// addressPlugins are configurations of plugins that may contain a path.
var addressPlugins = []struct{ name, text string }{
	{"PatchTransformer", "path: '%[1]s'\ntarget: {kind: HelmRepository}"},
	{"PatchTransformer", "target: {kind: HelmRepository, name: &k path}\n*k : '%[1]s'"},
	{"PatchTransformer", "!!binary cGF0aA==: '%[1]s'\ntarget: {kind: HelmRepository}"},
	{"PatchTransformer", "path: !!binary %[2]s\ntarget: {kind: HelmRepository}"},
	{"PatchTransformer", "PATH: !<tag:yaml.org,2002:binary> %[2]s\ntarget: {kind: HelmRepository}"},
	{"PatchTransformer", "target: {kind: HelmRepository, name: &k '%[1]s'}\npath: *k"},
	{"PatchTransformer", "target: &k {kind: HelmRepository, path: '%[1]s'}\n<<: *k"},
	{"PatchJson6902Transformer", "path: '%[1]s'\ntarget: {kind: HelmRepository, name: a}"},
	{"PatchStrategicMergeTransformer", "paths: ['%[1]s']"},
	{"PatchStrategicMergeTransformer", "patches: '%[1]s'"},
	{"ReplacementTransformer", "replacements: [{path: '%[1]s'}]"},
	{"ReplacementTransformer", "replacements: [{path: !!binary %[2]s}]"},
	{"ReplacementTransformer", "replacements: [{!!binary cGF0aA==: !!binary %[2]s}]"},
	{"ValueAddTransformer", "targetFilePath: '%[1]s'\ntargets: [{fieldPath: spec/url}]"},
	{"ConfigMapGenerator", "files: ['%[1]s']"},
	{"ConfigMapGenerator", "files: ['a=%[1]s']"},
	{"ConfigMapGenerator", "envs: ['%[1]s']"},
	{"ConfigMapGenerator", "files: [!!binary %[2]s]"},
	{"SecretGenerator", "files: ['%[1]s']"},
	{"SecretGenerator", "envs: ['%[1]s']"},
	{"HelmChartInflationGenerator", "name: a\nrepo: '%[1]s'\nvaluesFile: '%[1]s'"},
}

// TestNoConnection puts an address into each field of a kustomization that may contain a path. The run dials no address, runs no
// program, and reports that it does not read the address.
func TestNoConnection(t *testing.T) {
	seen := watched(t)
	server := seen.server.Addr().String()
	for _, address := range []string{
		"http://" + server + "/x.yaml",
		"HTTP://" + server + "/x.yaml?ref=main",
		"http://" + server + "/charts.git//base?ref=main",
		"http://169.254.169.254/latest/meta-data/iam/security-credentials/role",
		"https://[fe80::1]/x.yaml",
		"git::http://" + server + "/charts.git",
		"git@127.0.0.1:charts/charts.git",
		"ssh://git@127.0.0.1/charts.git",
		"github.com/helmsrc/charts?ref=main",
	} {
		fill := strings.NewReplacer("%[1]s", address, "%[2]s", base64.StdEncoding.EncodeToString([]byte(address))).Replace
		for _, field := range addressFields {
			files := map[string]string{"kustomization.yaml": "# toolkit.fluxcd.io\n" + fill(field.kustomization) + "\n"}
			for name, text := range field.files {
				files[name] = fill(text) + "\n"
			}
			seen.try(t, field.name+" "+address, files)
		}
		if !strings.HasSuffix(address, "x.yaml") && !strings.Contains(address, "meta-data") {
			continue // what plugins name is a file
		}
		for _, plugin := range addressPlugins {
			seen.plugin(t, plugin.name, fill(plugin.text))
		}
	}
}

// sealedFields are files that contain the address; the named ones are encrypted.
var sealedFields = []struct {
	name   string
	sealed []string
	files  map[string]string
}{
	{"kustomization", []string{"apps/kustomization.yaml"}, map[string]string{
		"apps/kustomization.yaml": "resources: [repo.yaml, '%[1]s']\nreplacements: [{path: '%[1]s'}]\npatches: [{path: '%[1]s'}]"}},
	{"base", []string{"apps/base/kustomization.yaml"}, map[string]string{
		"apps/kustomization.yaml":      "resources: [repo.yaml, base]",
		"apps/base/kustomization.yaml": "resources: ['%[1]s']\ncrds: ['%[1]s']"}},
	{"component", []string{"apps/base/kustomization.yaml"}, map[string]string{
		"apps/kustomization.yaml":      "resources: [repo.yaml]\ncomponents: [base]",
		"apps/base/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nreplacements: [{path: '%[1]s'}]"}},
	{"replacements", []string{"apps/r.yaml"}, map[string]string{
		"apps/kustomization.yaml": "resources: [repo.yaml]\nreplacements: [{path: r.yaml}]",
		"apps/r.yaml":             "path: '%[1]s'"}},
	{"transformer", []string{"apps/p.yaml"}, map[string]string{
		"apps/kustomization.yaml": "resources: [repo.yaml]\ntransformers: [p.yaml]",
		"apps/p.yaml":             "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\npath: '%[1]s'\ntarget: {kind: HelmRepository}"}},
	{"generator", []string{"apps/p.yaml"}, map[string]string{
		"apps/kustomization.yaml": "resources: [repo.yaml]\ngenerators: [p.yaml]",
		"apps/p.yaml":             "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\nfiles: ['%[1]s']"}},
	{"configuration", []string{"apps/c.yaml"}, map[string]string{
		"apps/kustomization.yaml": "resources: [repo.yaml]\nconfigurations: [c.yaml]\ncrds: [c.yaml]",
		"apps/c.yaml":             "namePrefix: [{path: '%[1]s'}]\npath: '%[1]s'"}},
	{"patch", []string{"apps/p.yaml"}, map[string]string{
		"apps/kustomization.yaml": "resources: [repo.yaml]\npatches: [{path: p.yaml}]",
		"apps/p.yaml":             "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: a, namespace: apps, annotations: {path: '%[1]s'}}"}},
	{"Kustomization of Flux", []string{"flux.yaml"}, map[string]string{
		"flux.yaml":               fluxOf("apps", "apps", "  components: ['%[1]s']\n  decryption: {provider: sops}"),
		"apps/kustomization.yaml": "resources: [repo.yaml]"}},
}

// TestNoConnectionSealed uses addresses that only appear when a file is decrypted, with an available key. They are
// neither dialled nor printed.
func TestNoConnectionSealed(t *testing.T) {
	seen := watched(t)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	env := func(name string) string { return map[string]string{"SOPS_AGE_KEY": identity.String()}[name] }
	for _, address := range []string{"http://" + seen.server.Addr().String() + "/canary.yaml", "https://canary.test//base?ref=main", "ssh://git@127.0.0.1/canary.git"} {
		for _, field := range sealedFields {
			for pattern, by := range map[string]string{"": "the whole file", "path|resources|files|components": "some fields"} {
				name := field.name + ", " + by + ", " + address
				files := map[string]string{"flux.yaml": fluxOf("apps", "apps", "  decryption: {provider: sops}\n"), "apps/repo.yaml": fmt.Sprintf(aRepository, "a")}
				for file, text := range field.files {
					text = strings.ReplaceAll(text, "%[1]s", address)
					if slices.Contains(field.sealed, file) {
						if file == "flux.yaml" && pattern == "" {
							pattern = "^spec$" // else it is no object at all
						}
						sealed, err := helmtest.Seal([]byte(text), pattern, identity.String())
						if err != nil {
							t.Fatal(err)
						}
						text = string(sealed)
					}
					files[file] = text + "\n"
				}
				dir := t.TempDir()
				write(t, dir, files)
				_, r, errs := loadWith(t.Context(), dir, Options{Getenv: env})
				if len(errs) == 0 && len(r.Notices) == 0 && field.name != "patch" && field.name != "configuration" {
					t.Errorf("%s: nothing is said", name)
				}
				if text := fmt.Sprint(errs, r.Notices, r.Rejections); strings.Contains(text, "canary") {
					t.Errorf("%s: %s", name, text)
				}
				seen.none(t, name)
			}
		}
	}
}

// plugin tries a configuration inline, in a file, and as an object of a directory.
func (s *sightings) plugin(t *testing.T, kind, text string) {
	text = "apiVersion: builtin\nkind: " + kind + "\nmetadata: {name: a}\n" + text + "\n"
	for _, field := range []string{"generators", "transformers", "validators"} {
		inPlace := "# toolkit.fluxcd.io\nresources: [repo.yaml]\n" + field + ":\n- |\n  " + strings.ReplaceAll(text, "\n", "\n  ") + "\n"
		s.try(t, field+" in place: "+text, map[string]string{"kustomization.yaml": inPlace})
		byName := "# toolkit.fluxcd.io\nresources: [repo.yaml]\n" + field + ": [%s]\n"
		s.try(t, field+" by file: "+text, map[string]string{"kustomization.yaml": fmt.Sprintf(byName, "p.yaml"), "p.yaml": text})
		s.try(t, field+" by directory: "+text, map[string]string{
			"kustomization.yaml": fmt.Sprintf(byName, "p"), "p/kustomization.yaml": "resources: [p.yaml]\n", "p/p.yaml": text})
	}
}

// sightings records the addresses that were dialled and the programs that were run.
type sightings struct {
	server net.Listener
	ran    string

	mu     sync.Mutex
	dialed []string
}

// watched records all connections of the default transport as sightings, and replaces git with a program that leaves a
// trace.
func watched(t *testing.T) *sightings {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	bin := t.TempDir()
	s := &sightings{server: server, ran: filepath.Join(bin, "ran")}
	if runtime.GOOS != "windows" {
		if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\n: > "+s.ran+"\nexit 1\n"), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
		t.Setenv("PATH", bin)
	}
	before := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = before })
	http.DefaultTransport = &http.Transport{DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.dialed = append(s.dialed, address)
		return nil, errors.New("refused")
	}}
	return s
}

func (s *sightings) try(t *testing.T, name string, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	files["repo.yaml"] = fmt.Sprintf(aRepository, "a")
	write(t, dir, files)
	if _, linked := files["linked/elsewhere.yaml"]; linked {
		if err := os.Symlink("elsewhere.yaml", filepath.Join(dir, "linked", "kustomization.yaml")); err != nil {
			t.Fatal(err)
		}
	}
	_, r, errs := load(t.Context(), dir, Options{})
	if len(errs) == 0 && len(r.Notices) == 0 {
		t.Errorf("%s: nothing is said", name)
	}
	s.none(t, name)
}

// none fails the test if an address was dialled or a program was run.
func (s *sightings) none(t *testing.T, name string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.dialed) > 0 {
		t.Errorf("%s: dialled %q", name, s.dialed)
		s.dialed = nil
	}
	if _, err := os.Stat(s.ran); err == nil {
		t.Errorf("%s: a program was run", name)
		_ = os.Remove(s.ran)
	}
}
