package validate

import (
	"fmt"

	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/generate"
)

// artifactGenerator checks the spec of a generator. Errors that depend on its sources are found when these are available.
func (v *validation) artifactGenerator(obj *swv1.ArtifactGenerator) {
	if err := generate.Validate(&obj.Spec); err != nil {
		v.fail(finding.RefusedGenerator, err, err.Path...)
		return
	}
	if alias, path := generate.UnknownAlias(&obj.Spec); path != nil {
		var known []string
		for _, s := range obj.Spec.Sources {
			known = append(known, s.Alias)
		}
		err := fmt.Errorf("no source has the alias '%s'", alias)
		if near, ok := finding.Nearest(alias, known); ok {
			err = fmt.Errorf("%w: did you mean '%s'?", err, near)
		}
		v.fail(finding.RefusedGenerator, err, path...)
	}
	for _, d := range generate.Doubts(&obj.Spec) {
		v.warn(finding.CopyPattern, d.Text, d.Path...)
	}
	v.fail(finding.DependencyCycle, v.inv.Cycle(v.adm.Object), "spec", "sources")
	for i, a := range obj.Spec.OutputArtifacts {
		v.fail(finding.ChartClash, v.inv.Clash(v.adm.Object.Namespace, a.Name), "spec", "artifacts", i, "name")
	}
}
