package values

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	godigest "github.com/opencontainers/go-digest"
	goyaml "go.yaml.in/yaml/v2"
	"helm.sh/helm/v3/pkg/strvals"
	"sigs.k8s.io/yaml"
)

// Digest returns helm-controller's digest of composed values: of the YAML with sorted keys, or of the empty text without
// values. Unlike helm-controller, it also sorts maps in lists of lists, so that the digest does not change from run to run.
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

// maxDigests is the limit of values of a release that have a digest each.
const maxDigests = 500

// Digests returns composed values with a digest instead of each value that wanted accepts. It leaves out all other values:
// the keys of maps are removed, items of lists are nil. It returns nil if there are more than maxDigests.
func Digests(composed map[string]any, wanted func(value any, path ...any) bool) map[string]any {
	d := digests{wanted: wanted, left: maxDigests}
	found, _ := d.of(composed, nil).(map[string]any)
	switch {
	case d.left < 0:
		return nil
	case found == nil:
		return map[string]any{}
	}
	return found
}

type digests struct {
	wanted func(value any, path ...any) bool
	left   int
}

// of returns nil for a value without wanted parts.
func (d *digests) of(value any, path []any) any {
	switch v := value.(type) {
	case map[string]any:
		found := map[string]any{}
		for key, item := range v {
			if part := d.of(item, append(path, key)); part != nil {
				found[key] = part
			}
		}
		if len(found) > 0 {
			return found
		}
		if len(v) > 0 {
			return nil
		}
	case []any:
		found := make([]any, len(v))
		for i, item := range v {
			found[i] = d.of(item, append(path, i))
		}
		if slices.ContainsFunc(found, func(part any) bool { return part != nil }) {
			return found
		}
		if len(v) > 0 {
			return nil
		}
	}
	if d.left < 0 || !d.wanted(value, path...) {
		return nil
	}
	d.left--
	text, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	const shown = 16
	return godigest.SHA256.FromBytes(text).Encoded()[:shown]
}

// Integers returns expressions for helm --set that set the integers of composed values that come from target paths. In a
// values file, helm parses every number as a float, prints it in another form from a million on, and loses digits. It leaves
// out integers below a name that --set cannot express.
func Integers(composed map[string]any) []string {
	var expressions []string
	var collect func(value any, path string, alone func(any) any)
	collect = func(value any, path string, alone func(any) any) {
		switch v := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				collect(v[name], path+"."+setName.Replace(name), func(of any) any { return alone(map[string]any{name: of}) })
			}
		case []any:
			for i, item := range v {
				collect(item, fmt.Sprintf("%s[%d]", path, i), func(of any) any {
					list := make([]any, i+1)
					list[i] = of
					return alone(list)
				})
			}
		case int64:
			expression := strings.TrimPrefix(path, ".") + "=" + strconv.FormatInt(v, 10)
			into := map[string]any{}
			if err := strvals.ParseInto(expression, into); err == nil && reflect.DeepEqual(into, alone(v)) {
				expressions = append(expressions, expression)
			}
		}
	}
	collect(composed, "", func(of any) any { return of })
	return expressions
}

// setName escapes the characters that separate names in an expression of --set.
var setName = strings.NewReplacer(`\`, `\\`, ".", `\.`, ",", `\,`, "=", `\=`, "[", `\[`, "]", `\]`)
