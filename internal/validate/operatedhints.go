package validate

import (
	"regexp"
	"strings"
	"sync"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// operatedHints rewrites hints about an object that a HelmRelease of Flux 1 made: the fields of the release have other names, and
// are fewer. Hints about other objects stay as they are.
func operatedHints(obj *manifest.Object, code finding.Code, hints []string) []string {
	if obj.Origin == nil || !inventory.IsOperated(obj.Origin) {
		return hints
	}
	hint := ""
	switch {
	case code == finding.Authentication && obj.Kind == sourcev1.HelmRepositoryKind:
		hint = "the operator used the logins of its pod, which no field of the release names: " + migrateHint("where spec.secretRef of the HelmRepository does") + ", or " + directoryHint(obj)
	case code == finding.Authentication && obj.Kind == sourcev1.GitRepositoryKind:
		hint = operatedGitHint(obj)
	case code == finding.OCIWithoutType:
		hint = "the operator does not support charts from registries: " + migrateHint("which does")
	case code == finding.NotFound && obj.Kind == sourcev1.HelmRepositoryKind:
		hint = "spec.chart.repository must be the directory that contains index.yaml"
	}
	if hint != "" {
		return []string{hint}
	}
	if rule, ok := finding.Lookup(string(code)); ok && len(hints) == 0 && rule.Hint() != "" {
		hints = []string{rule.Hint()}
	}
	own := make([]string, len(hints))
	for i, hint := range hints {
		own[i] = inOperatedFields(obj, hint)
	}
	return own
}

func migrateHint(why string) string {
	return "write the release for Flux 2 with 'helmsrc migrate', " + why
}

func directoryHint(obj *manifest.Object) string {
	return "replace it by a directory with " + finding.StandIn(obj.Kind, obj.Namespace, obj.Name)
}

// operatedGitHint returns the hint for a Git repository without a login, "" if it refers to a Secret.
func operatedGitHint(obj *manifest.Object) string {
	url := manifest.At[string](obj.Content, "spec", "url")
	switch scheme, _, _ := strings.Cut(strings.ToLower(url), "://"); {
	case scheme == "ssh":
		return "the operator's pod had a key for the repository, which no field of the release names: " + directoryHint(obj)
	case manifest.ValueAt(obj.Content, []any{"spec", "secretRef"}) != nil:
		return ""
	case scheme == "https":
		return "name a Secret with username and password in spec.chart.secretRef, or " + directoryHint(obj)
	}
	return "the operator sends a login to https URLs only: " + directoryHint(obj)
}

// fluxField matches a field of an object of Flux 2 in a text.
var fluxField = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bspec\.[a-zA-Z]+`) })

// inOperatedFields renames the fields in a hint to those of the release. If a field is missing there, the hint is to use Flux 2.
func inOperatedFields(obj *manifest.Object, hint string) string {
	names := map[string]string{"spec.chart": "spec.chart.name", "spec.version": "spec.chart.version"}
	switch {
	case manifest.ValueAt(obj.Content, []any{"spec", "sourceRef", "kind"}) == sourcev1.GitRepositoryKind:
		names = map[string]string{"spec.chart": "spec.chart.path"}
	case obj.Kind == sourcev1.HelmRepositoryKind:
		names = map[string]string{"spec.url": "spec.chart.repository"}
	case obj.Kind == sourcev1.GitRepositoryKind:
		names = map[string]string{"spec.url": "spec.chart.git", "spec.ref": "spec.chart.ref", "spec.secretRef": "spec.chart.secretRef"}
	}
	lacking := false
	text := fluxField().ReplaceAllStringFunc(hint, func(field string) string {
		name, ok := names[field]
		if !ok {
			lacking = true
			return field
		}
		return name
	})
	if lacking {
		return text + "; a release of Flux 1 has no such field: " + migrateHint("which has it")
	}
	return text
}
