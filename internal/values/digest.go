package values

import (
	"fmt"
	"slices"
	"strings"

	godigest "github.com/opencontainers/go-digest"
	goyaml "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"
)

// Digest is helm-controller's digest of composed values: of the YAML with sorted keys, or of nothing if there are no
// values. Unlike there the maps in lists of lists are sorted too, so that it does not change from run to run.
func Digest(values map[string]any) (godigest.Digest, error) {
	if len(values) == 0 {
		return godigest.SHA256.FromBytes(nil), nil
	}
	object := yaml.JSONObjectToYAMLObject(values)
	sortKeys(object)
	hash := godigest.SHA256.Digester()
	encoder := goyaml.NewEncoder(&limited{hash.Hash(), maxText})
	err := encoder.Encode(object)
	if err == nil {
		err = encoder.Close()
	}
	if err != nil {
		return "", fmt.Errorf("digest of values: %w", err)
	}
	return hash.Digest(), nil
}

func sortKeys(v any) {
	switch v := v.(type) {
	case goyaml.MapSlice:
		slices.SortFunc(v, func(a, b goyaml.MapItem) int {
			return strings.Compare(fmt.Sprint(a.Key), fmt.Sprint(b.Key))
		})
		for _, item := range v {
			sortKeys(item.Value)
		}
	case []any:
		for _, item := range v {
			sortKeys(item)
		}
	}
}
