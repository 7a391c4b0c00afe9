package validate

import (
	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/generate"
)

// artifactGenerator judges a generator by itself. What its sources show is found where they are available.
func (v *validation) artifactGenerator(obj *swv1.ArtifactGenerator) {
	if err := generate.Validate(&obj.Spec); err != nil {
		v.fail(finding.RefusedGenerator, err, err.Path...)
		return
	}
	for _, d := range generate.Doubts(&obj.Spec) {
		code := finding.CopyPattern
		switch d.Topic {
		case generate.Unknown:
			code = finding.UnknownOrigin
		case generate.Shadowed:
			code = finding.ShadowedSource
		}
		v.warn(code, d.Text, d.Path...)
	}
	if cycle := v.inv.Cycle(v.adm.Object); cycle != nil {
		v.fail(finding.GeneratorCycle, cycle, "spec", "sources")
	}
	for i, a := range obj.Spec.OutputArtifacts {
		v.fail(finding.ArtifactClash, v.inv.Clash(v.adm.Object.Namespace, a.Name), "spec", "artifacts", i, "name")
	}
}
