package values

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"helm.sh/helm/v3/pkg/strvals"
)

// Integers returns expressions for helm --set that give composed values the integers which target paths gave them. In a
// values file helm reads every number as a float, prints it in another way from a million on, and loses digits. An integer
// below a name that --set cannot express is left out.
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

// setName escapes what separates names in an expression of --set.
var setName = strings.NewReplacer(`\`, `\\`, ".", `\.`, ",", `\,`, "=", `\=`, "[", `\[`, "]", `\]`)
