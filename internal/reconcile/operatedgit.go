package reconcile

import (
	"cmp"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/operator"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// operated is the HelmRelease of Flux 1 that the object follows from, nil for all others. What the operator does otherwise than
// source-controller is asked of it: no field of a manifest can say so.
func (p *reconciliation) operated() *operator.HelmRelease {
	if p.adm.Object.Origin == nil {
		return nil
	}
	return p.r.inventory.Operated(p.adm.Object.Origin)
}

// operatedOptions are what the operator would fetch a repository with.
func (p *gitReconciliation) operatedOptions(hr *operator.HelmRelease, o git.Options) (git.Options, error) {
	chart := &hr.Spec.Chart
	o.Ref = git.Ref{Any: chart.RefOr(operator.DefaultRef)}
	if !chart.ReadsSecret() {
		return o, nil
	}
	var err error
	o.Login, err = p.r.secrets.OperatorGit(cmp.Or(chart.SecretRef.Namespace, hr.Namespace), chart.SecretRef.Name)
	if err != nil {
		return o, loginFailure(err)
	}
	return o, nil
}

// operatedFiles keeps everything but the files of version control: the operator knows no other rules.
func operatedFiles() tree.Filter { return tree.VCSRules().Choose }

// readsOutside reports whether values of the release may lie outside of the chart.
func readsOutside(hr *operator.HelmRelease) bool {
	if hr == nil {
		return false
	}
	for _, from := range hr.Spec.ValuesFrom {
		if from.ChartFileRef != nil {
			return true
		}
	}
	return false
}

// missingDependencies are what a chart requires and has to be fetched for it. A chart of a HelmRelease of Flux 1 loses what it
// contains of that, unless the release says otherwise: then it has to be complete.
func (p *chartReconciliation) missingDependencies(c *helmchart.Chart) (missing []*helmchart.Dependency, warned []string, err error) {
	hr := p.operated()
	if hr == nil {
		missing, warned = chart.Missing(c)
		return missing, warned, nil
	}
	vendored := hr.Spec.Chart.SkipDepUpdate
	missing, warned = chart.Unlocked(c, vendored)
	switch {
	case !vendored:
		chart.Unvendor(c, missing)
	case len(missing) > 0:
		return nil, nil, status.DependencyBuildError.Wrap(&incompleteError{missing[0].Name})
	}
	return missing, warned, nil
}

// incompleteError is a chart that lacks what it requires, where nothing may be fetched for it.
type incompleteError struct{ name string }

func (e *incompleteError) Error() string {
	return "the chart requires '" + e.name + "', which is not in its directory charts, and spec.chart.skipDepUpdate is set"
}

// Hint says what would complete it.
func (*incompleteError) Hint() string {
	return "run 'helm dependency update' and commit what is in charts, or leave out skipDepUpdate"
}
