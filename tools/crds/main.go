// Command crds generates the schemas that package admission embeds. It runs controller-gen's own generator over the API
// types of Flux's controllers and writes one JSON schema per kind, without the status, which is not checked.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/yaml"
)

const genModule = "sigs.k8s.io/controller-tools"

// api is a module of API types, the version of it that is stored, and the kinds of it that are embedded.
type api struct {
	module, version string
	kinds           []string
}

var apis = []api{
	{"github.com/fluxcd/source-controller/api", "v1", []string{"Bucket", "ExternalArtifact", "GitRepository", "HelmChart", "HelmRepository", "OCIRepository"}},
	{"github.com/fluxcd/helm-controller/api", "v2", []string{"HelmRelease"}},
	{"github.com/fluxcd/image-reflector-controller/api", "v1", []string{"ImagePolicy", "ImageRepository"}},
	{"github.com/fluxcd/kustomize-controller/api", "v1", []string{"Kustomization"}},
	{"github.com/fluxcd/source-watcher/api/v2", "v1beta1", []string{"ArtifactGenerator"}},
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: crds DIRECTORY")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	files, err := generate()
	if err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate gives the content of each file by its name.
func generate() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, a := range apis {
		if err := a.generate(files); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func (a api) generate(files map[string][]byte) error {
	comment, err := a.provenance()
	if err != nil {
		return err
	}
	crds, err := a.controllerGen()
	if err != nil {
		return err
	}
	for _, kind := range a.kinds {
		schema, err := a.storedSchema(crds, kind)
		if err != nil {
			return err
		}
		if files[kind+".json"], err = render(comment, schema); err != nil {
			return err
		}
	}
	return nil
}

// provenance says what the schemas were made from. A test of package admission compares it with go.mod.
func (a api) provenance() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Path}} {{.Version}}", a.module, genModule).Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	return "crd:maxDescLen=0, status left out: " + strings.Join(strings.Split(strings.TrimSpace(string(out)), "\n"), ", "), nil
}

// controllerGen runs `controller-gen crd:maxDescLen=0 paths=.../api/v1` in this process.
func (a api) controllerGen() ([]apiextensionsv1.CustomResourceDefinition, error) {
	none := 0
	var gen genall.Generator = crd.Generator{MaxDescLen: &none}
	runtime, err := (&genall.Generators{&gen}).ForRoots(a.module + "/" + a.version)
	if err != nil {
		return nil, err
	}
	out := &memory{}
	runtime.OutputRules = genall.OutputRules{Default: out}
	if failed := runtime.Run(); failed {
		return nil, fmt.Errorf("controller-gen failed")
	}
	var crds []apiextensionsv1.CustomResourceDefinition
	for _, f := range out.files {
		var c apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(f.Bytes(), &c); err != nil {
			return nil, err
		}
		crds = append(crds, c)
	}
	return crds, nil
}

func (a api) storedSchema(crds []apiextensionsv1.CustomResourceDefinition, kind string) (*apiextensionsv1.JSONSchemaProps, error) {
	for _, c := range crds {
		if c.Spec.Names.Kind != kind {
			continue
		}
		for _, v := range c.Spec.Versions {
			if v.Storage && v.Name == a.version {
				return v.Schema.OpenAPIV3Schema, nil
			}
		}
	}
	return nil, fmt.Errorf("no CRD for %s %s", kind, a.version)
}

func render(comment string, schema *apiextensionsv1.JSONSchemaProps) ([]byte, error) {
	delete(schema.Properties, "status")
	data, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	fields["$comment"] = comment
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	err = enc.Encode(fields)
	return b.Bytes(), err
}

// memory keeps what controller-gen would write to files.
type memory struct{ files []*bytes.Buffer }

func (m *memory) Open(*loader.Package, string) (io.WriteCloser, error) {
	b := &bytes.Buffer{}
	m.files = append(m.files, b)
	return nopCloser{b}, nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
