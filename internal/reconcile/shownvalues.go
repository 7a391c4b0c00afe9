package reconcile

import (
	"net/url"

	"github.com/helmsrc/helmsrc/internal/auth"
)

// keepValues gives the values of a release back their URLs as they were written, but for passwords: what is in a query
// there is configuration. What came from a Secret is concealed before.
func keepValues(content map[string]any, concealed any) {
	whole, _ := concealed.(map[string]any)
	given, _ := whole["spec"].(map[string]any)
	spec, _ := content["spec"].(map[string]any)
	if values, ok := given["values"]; ok && content["kind"] == "HelmRelease" && spec != nil {
		spec["values"] = withoutUserinfo(values)
	}
}

func withoutUserinfo(value any) any {
	return withTexts(value, func(v string) string {
		text := urlPattern().ReplaceAllStringFunc(v, func(match string) string {
			if u, err := url.Parse(match); err == nil && u.User == nil {
				return match
			}
			return auth.RedactURL(match)
		})
		return userinfoPattern().ReplaceAllStringFunc(text, redactUserinfo)
	})
}
