package reconcile

import (
	"cmp"

	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/operator"
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
