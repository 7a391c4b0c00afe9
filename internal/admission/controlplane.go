package admission

import (
	"embed"
	"fmt"
	"sync"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// controlplane has schemas of what the operator of Flux works on, as far as it is certain what its API server refuses: types,
// values of a few, and what is required. They are our own, and know no more fields than that.
//
//go:embed controlplane
var controlplane embed.FS

var operatorSchemas = map[string]func() (*schema, error){
	"FluxInstance":             lazyOperator("FluxInstance"),
	"ResourceSet":              lazyOperator("ResourceSet"),
	"ResourceSetInputProvider": lazyOperator("ResourceSetInputProvider"),
}

func lazyOperator(kind string) func() (*schema, error) {
	return sync.OnceValues(func() (*schema, error) {
		data, err := controlplane.ReadFile("controlplane/" + kind + ".json")
		if err != nil {
			return nil, err
		}
		return parseSchema(data)
	})
}

// Operator is Admit for what the operator of Flux works on. Of a kind that it does not know, and of a version that is not v1,
// nothing is refused.
func Operator(obj *manifest.Object) error {
	open, ok := operatorSchemas[obj.Kind]
	if !ok || obj.APIVersion != manifest.OperatorGroup+"/v1" {
		return nil
	}
	s, err := open()
	if err != nil {
		return fmt.Errorf("schema of %s: %w", obj.Kind, err)
	}
	r := &review{obj: obj, schema: s}
	r.copy()
	if err := r.decode(); err != nil {
		return err
	}
	return r.validate()
}
