package kustomize

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/openapi/kubernetesapi"

	"github.com/helmsrc/helmsrc/internal/edit"
)

// setSchema sets the schema of the whole process to the schema that the kustomization names.
func (t *target) setSchema(first bool) error {
	var text []byte
	if path, ok := t.k.OpenAPI["path"]; ok {
		var err error
		if text, err = t.loader.Load(path); err == nil {
			err = checkSchema(text)
		}
		if err != nil {
			return err
		}
	}
	if first {
		merged = false
	}
	if len(t.k.OpenAPI) > 0 && !t.named {
		t.named = true
		t.restoreBuiltIn()
	}
	if err := openapi.SetSchema(t.k.OpenAPI, text, first); err != nil || text == nil {
		return err
	}
	// The schema is parsed when it is first used, and kustomize panics if it is invalid.
	_, err := Guard(func() (any, error) { return openapi.Schema(), nil })
	if p, ok := errors.AsType[*PanicError](err); ok {
		return fmt.Errorf("openapi.path: %v", p.Value)
	}
	return err
}

func resetSchema() {
	if openapi.GetSchemaVersion() != kubernetesapi.DefaultOpenAPI {
		openapi.ResetOpenAPI()
	}
}

// builtIn reports whether kyaml may use its schema of Kubernetes. Parsing it takes as long as some hundred builds, and 40 MiB, so it
// is suppressed until an object of Kubernetes is merged: it says nothing about the kinds of Flux.
var builtIn bool

func allowBuiltIn() {
	if !builtIn {
		openapi.ResetOpenAPI() // the suppressed schema counts as parsed
		builtIn = true
	}
}

// merged reports whether objects were merged in the build that runs.
var merged bool

// restoreBuiltIn brings the schema of Kubernetes into the state that it has in kustomize when a kustomization names another one: a merge
// has parsed it, and after an object of an unknown kind it will be parsed too. Both schemas are used then.
func (t *target) restoreBuiltIn() {
	openapi.ResetOpenAPI()
	builtIn = true
	for r := range t.files {
		r.GetGvk()
	}
	if merged {
		openapi.Schema()
	}
}

// prepareMerge is called before the nodes of a patch and an object are merged.
func prepareMerge(nodes ...*yaml.Node) {
	merged = true
	switch {
	case builtIn:
	case slices.ContainsFunc(nodes, needsBuiltIn):
		allowBuiltIn()
	default:
		openapi.SuppressBuiltInSchemaUse()
	}
}

// needsBuiltIn reports whether kyaml may look up a type or definition of Kubernetes for a merge: for the object, for an object in one of
// its fields, or for a comment that refers to a definition. An alias may be a part of an object.
func needsBuiltIn(root *yaml.Node) (found bool) {
	edit.Each(root, func(n *yaml.Node) {
		for _, comment := range []string{n.HeadComment, n.LineComment} {
			found = found || strings.Contains(comment, "$ref") || strings.Contains(comment, "$openapi")
		}
		found = found || n.Kind == yaml.AliasNode
		if n.Kind != yaml.MappingNode {
			return
		}
		_, known := fieldOf(n, "kind")
		if version, typed := fieldOf(n, "apiVersion"); known && typed {
			group, _, _ := strings.Cut(version.Value, "/")
			found = found || !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
		}
	})
	return found
}
