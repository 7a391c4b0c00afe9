package reconcile

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/operator"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// operated returns the HelmRelease of Flux 1 from which the object was derived, nil for all other objects. Where the operator
// differs from source-controller, the code asks this function: no field of a manifest can express it.
func (p *reconciliation) operated() *operator.HelmRelease {
	if p.adm.Object.Origin == nil {
		return nil
	}
	return p.r.inventory.Operated(p.adm.Object.Origin)
}

// operatedFiles keeps all files except those of version control: the operator has no other rules.
func operatedFiles() tree.Filter { return tree.VCSRules().Choose }

func readsOutside(hr *operator.HelmRelease) bool {
	if hr == nil {
		return false
	}
	return slices.ContainsFunc(hr.Spec.ValuesFrom, func(from operator.ValuesFromSource) bool { return from.ChartFileRef != nil })
}

// missingDependencies returns the dependencies that must be fetched for a chart. For a HelmRelease of Flux 1 they replace the
// vendored ones, unless the release sets skipDepUpdate: then the chart must be complete.
func (p *chartReconciliation) missingDependencies(c *helmchart.Chart) (missing []*helmchart.Dependency, warned []string, err error) {
	hr := p.operated()
	if hr == nil {
		missing, warned = chart.Missing(c)
		return missing, warned, nil
	}
	vendored := hr.Spec.Chart.SkipDepUpdate
	missing = chart.Unlocked(c, vendored)
	switch {
	case !vendored:
		chart.Unvendor(c, missing)
	case len(missing) > 0:
		return nil, nil, status.DependencyBuildError.Wrap(&finding.Problem{
			Text:   "the chart requires '" + missing[0].Name + "', which is not in its directory charts, and spec.chart.skipDepUpdate is set",
			Advice: "run 'helm dependency update' and commit what is in charts, or leave out skipDepUpdate",
		})
	}
	return missing, nil, nil
}

// warnIgnored warns about files in a chart of a HelmRelease of Flux 1 that the same chart would not have in Flux 2.
func (p *chartReconciliation) warnIgnored(ctx context.Context, root *os.Root, dir string) error {
	rules, err := p.r.sourceRules.Do(ctx, root.Name(), func() (*tree.Rules, error) {
		return tree.SourceRules(ctx, root, "", tree.Options{Filter: operatedFiles()})
	})
	if err != nil {
		return err
	}
	sub, err := root.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer sub.Close()
	files, _, err := tree.List(ctx, sub, tree.Options{Filter: below(dir, operatedFiles())})
	if err != nil {
		return err
	}
	ignored := slices.DeleteFunc(files, func(name string) bool { return !rules.Ignored(path.Join(dir, name), false) })
	if len(ignored) == 0 {
		return nil
	}
	names := ignored[0]
	if more := len(ignored) - 1; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	p.warnAt(finding.OperatorSetting, names+" of the chart would be left out in Flux 2, which reads .sourceignore and has defaults", "spec", "chart")
	return nil
}
