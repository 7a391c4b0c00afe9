package reconcile

import "github.com/helmsrc/helmsrc/internal/auth"

// keepValues gives the values of a release back their URLs as they were written, but for passwords: what is in a query
// there is configuration. What came from a Secret is concealed before.
func keepValues(content map[string]any, concealed any) {
	whole, _ := concealed.(map[string]any)
	given, _ := whole["spec"].(map[string]any)
	spec, _ := content["spec"].(map[string]any)
	if values, ok := given["values"]; ok && content["kind"] == "HelmRelease" && spec != nil {
		spec["values"] = withTexts(values, auth.RedactLogins)
	}
}
