package kustomize

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// maxReferences bounds how many schemas may do no more than refer to each other. kustomize would follow them for ever.
const maxReferences = 100

// checkSchema refuses a schema that refers to itself, and no properties lie between. kustomize reports other mistakes.
func checkSchema(text []byte) error {
	var root any
	if yaml.Unmarshal(text, &root) != nil {
		return nil
	}
	return checkReferences(root, root)
}

func checkReferences(root, v any) error {
	switch v := v.(type) {
	case map[string]any:
		at := v
		for count := 0; at != nil; count++ {
			reference, _ := at["$ref"].(string)
			if reference == "" {
				break
			}
			if count > maxReferences {
				return fmt.Errorf("openapi.path: %s: a schema that refers to itself", reference)
			}
			at = referred(root, reference)
		}
		for _, item := range v {
			if err := checkReferences(root, item); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := checkReferences(root, item); err != nil {
				return err
			}
		}
	}
	return nil
}

// referred is the schema at a JSON pointer, nil for none.
func referred(root any, reference string) map[string]any {
	_, pointer, _ := strings.Cut(reference, "#")
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		fields, _ := root.(map[string]any)
		root = fields[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	schema, _ := root.(map[string]any)
	return schema
}
