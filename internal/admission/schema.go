package admission

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// crds has the generated schemas, and in written those of APIs that are no module here.
//
//go:embed crds written
var crds embed.FS

// schema is what is known of one kind: its shape, and the schema in the forms that the API server's code wants, which
// are made when the shape does not do.
type schema struct {
	*shape
	server func() (*serverSchema, error)
}

type serverSchema struct {
	structural *structural.Structural
	validator  validation.SchemaValidator
	rules      func() *cel.Validator // compiled when first needed, nil if there are none
}

// schemas are read when an object of their kind is seen. Nothing here changes otherwise.
var schemas = map[string]func() (*schema, error){
	"ArtifactGenerator": lazySchema("ArtifactGenerator"),
	"Bucket":            lazySchema("Bucket"),
	"ExternalArtifact":  lazySchema("ExternalArtifact"),
	"GitRepository":     lazySchema("GitRepository"),
	"HelmChart":         lazySchema("HelmChart"),
	"HelmRelease":       lazySchema("HelmRelease"),
	"HelmRepository":    lazySchema("HelmRepository"),
	"ImagePolicy":       lazySchema("ImagePolicy"),
	"ImageRepository":   lazySchema("ImageRepository"),
	"Kustomization":     lazySchema("Kustomization"),
	"OCIRepository":     lazySchema("OCIRepository"),
	flux1Kind:           lazySchema(flux1Kind),
	olderFlux1Kind:      lazySchema(olderFlux1Kind),
}

func lazySchema(kind string) func() (*schema, error) {
	return sync.OnceValues(func() (*schema, error) { return readSchema(kind) })
}

func schemaOf(kind string) (*schema, error) {
	s, ok := schemas[kind]
	if !ok {
		return nil, fmt.Errorf("no such kind")
	}
	return s()
}

func readSchema(kind string) (*schema, error) {
	data, err := crds.ReadFile(schemaFile(kind))
	if err != nil {
		return nil, err
	}
	return parseSchema(data)
}

func parseSchema(data []byte) (*schema, error) {
	shape, err := shapeOf(data)
	if err != nil {
		return nil, err
	}
	return &schema{shape, sync.OnceValues(func() (*serverSchema, error) { return readServerSchema(data) })}, nil
}

func schemaFile(kind string) string {
	if strings.Contains(kind, ".") {
		return "written/" + kind + ".json"
	}
	return "crds/" + kind + ".json"
}

func readServerSchema(data []byte) (*serverSchema, error) {
	var external apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(data, &external); err != nil {
		return nil, err
	}
	var internal apiextensions.JSONSchemaProps
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, &internal, nil)
	if err != nil {
		return nil, err
	}
	s := &serverSchema{}
	if s.structural, err = structural.NewStructural(&internal); err != nil {
		return nil, err
	}
	if s.validator, _, err = validation.NewSchemaValidator(&internal); err != nil {
		return nil, err
	}
	s.rules = sync.OnceValue(func() *cel.Validator {
		return cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
	})
	return s, nil
}
