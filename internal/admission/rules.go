package admission

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// rule is a validation rule of a schema, written in CEL.
type rule struct {
	Rule, Message string

	holds func(self fields) bool
}

func (r *rule) prepare() error {
	if r.holds = rules[r.Rule]; r.holds == nil {
		return fmt.Errorf("no function for the rule %q", r.Rule)
	}
	return nil
}

// rules implements the rules of the schemas as functions: the API server's evaluator of CEL would be linked for these only, and
// needs more time to compile them than all the rest of admission. The tests compare each function with its rule, for objects
// whose fields have the right types.
var rules = map[string]func(self fields) bool{
	"has(self.pathPattern) && size(self.pathPattern) > 0 || self.artifacts.all(a, a.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'))": func(self fields) bool {
		return self.text("pathPattern") != "" || !slices.ContainsFunc(self.list("artifacts"), func(a fields) bool { return !objectName().MatchString(a.text("name")) })
	},

	"self.provider == 'aws' || self.provider == 'generic' || !has(self.sts)": func(self fields) bool {
		return self.is("provider", "aws", "generic") || !self.has("sts")
	},
	"self.provider != 'aws' || !has(self.sts) || self.sts.provider == 'aws'": func(self fields) bool {
		return !self.is("provider", "aws") || !self.has("sts") || self.object("sts").is("provider", "aws")
	},
	"self.provider != 'generic' || !has(self.sts) || self.sts.provider == 'ldap'": func(self fields) bool {
		return !self.is("provider", "generic") || !self.has("sts") || self.object("sts").is("provider", "ldap")
	},
	"!has(self.sts) || self.sts.provider != 'aws' || !has(self.sts.secretRef)": func(self fields) bool {
		return !self.object("sts").is("provider", "aws") || !self.object("sts").has("secretRef")
	},
	"!has(self.sts) || self.sts.provider != 'aws' || !has(self.sts.certSecretRef)": func(self fields) bool {
		return !self.object("sts").is("provider", "aws") || !self.object("sts").has("certSecretRef")
	},
	"self.provider != 'generic' || !has(self.serviceAccountName)": func(self fields) bool {
		return !self.is("provider", "generic") || !self.has("serviceAccountName")
	},
	"!has(self.secretRef) || !has(self.serviceAccountName)": func(self fields) bool {
		return !self.has("secretRef") || !self.has("serviceAccountName")
	},
	"!has(self.serviceAccountName) || (has(self.provider) && (self.provider == 'azure' || self.provider == 'aws'))": func(self fields) bool {
		return !self.has("serviceAccountName") || self.is("provider", "azure", "aws")
	},

	"!has(self.verify) || self.sourceRef.kind == 'HelmRepository'": func(self fields) bool {
		return !self.has("verify") || self.object("sourceRef").is("kind", "HelmRepository")
	},

	"(has(self.chart) && !has(self.chartRef)) || (!has(self.chart) && has(self.chartRef))": func(self fields) bool {
		return self.has("chart") != self.has("chartRef")
	},
	"!has(self.retryInterval) || self.name != 'RemediateOnFailure'": func(self fields) bool {
		return !self.has("retryInterval") || !self.is("name", "RemediateOnFailure")
	},
	"!has(self.retryInterval) || self.name == 'RetryOnFailure'": func(self fields) bool {
		return !self.has("retryInterval") || self.is("name", "RetryOnFailure")
	},
	"has(self.configMapRef) || has(self.secretRef)": func(self fields) bool {
		return self.has("configMapRef") || self.has("secretRef")
	},
	"!has(self.configMapRef) || !has(self.secretRef)": func(self fields) bool {
		return !self.has("configMapRef") || !self.has("secretRef")
	},

	"!has(self.interval) || (has(self.digestReflectionPolicy) && self.digestReflectionPolicy == 'Always')": func(self fields) bool {
		return !self.has("interval") || self.is("digestReflectionPolicy", "Always")
	},
	"has(self.interval) || !has(self.digestReflectionPolicy) || self.digestReflectionPolicy != 'Always'": func(self fields) bool {
		return self.has("interval") || !self.is("digestReflectionPolicy", "Always")
	},

	"!has(self.steps) || (!has(self.resources) && !has(self.resourcesTemplate))": func(self fields) bool {
		return !self.has("steps") || !self.has("resources") && !self.has("resourcesTemplate")
	},
	"has(self.steps) || has(self.resources) || has(self.resourcesTemplate)": func(self fields) bool {
		return self.has("steps") || self.has("resources") || self.has("resourcesTemplate")
	},
	"has(self.name) || has(self.selector)": func(self fields) bool {
		return self.has("name") || self.has("selector")
	},
	"!has(self.name) || !has(self.selector)": func(self fields) bool {
		return !self.has("name") || !self.has("selector")
	},
	"self.name == 'Permute' || !has(self.includeEmptyProviders)": func(self fields) bool {
		return self.is("name", "Permute") || !self.has("includeEmptyProviders")
	},
	"!has(self.steps) || self.steps.all(s, self.steps.exists_one(t, t.name == s.name))": func(self fields) bool {
		names := map[string]bool{}
		for _, step := range self.list("steps") {
			names[step.text("name")] = true
		}
		return len(names) == len(self.list("steps"))
	},
	"has(self.name) && self.name == 'flux'": func(self fields) bool { return self.is("name", "flux") },
}

var objectName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
})

// fields holds the fields of an object that a rule checks. A field of the wrong type counts as missing.
type fields map[string]any

func (f fields) has(name string) bool {
	_, ok := f[name]
	return ok
}

func (f fields) text(name string) string {
	text, _ := f[name].(string)
	return text
}

func (f fields) is(name string, texts ...string) bool {
	return f.has(name) && slices.Contains(texts, f.text(name))
}

func (f fields) object(name string) fields {
	object, _ := f[name].(map[string]any)
	return object
}

func (f fields) list(name string) []fields {
	items, _ := f[name].([]any)
	list := make([]fields, len(items))
	for i, item := range items {
		list[i], _ = item.(map[string]any)
	}
	return list
}

// checkRules returns the errors of broken rules, in the order of the field names.
func (s *schema) checkRules(path *field.Path, value any) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	switch v := value.(type) {
	case map[string]any:
		for _, r := range s.Rules {
			if !r.holds(v) {
				errs = append(errs, field.Invalid(path, field.OmitValueType{}, strings.TrimSpace(r.Message)))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			errs = append(errs, s.field(name).checkRules(path.Child(name), v[name])...)
		}
	case []any:
		for i, e := range v {
			errs = append(errs, s.Items.checkRules(path.Index(i), e)...)
		}
	}
	return errs
}
