package inventory

import (
	"cmp"
	"errors"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/store"
)

// UnavailableError reports a source that cannot be used, with the message of an
// API server: for a controller, a rejected object does not exist either.
type UnavailableError struct {
	Kind, Name string
	Err        error
}

func (e *UnavailableError) Error() string {
	return (&manifest.NotFoundError{Group: sourcev1.GroupVersion.Group, Kind: e.Kind, Name: e.Name}).Error()
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// Hint returns the reason why an object of the input is not used.
func (e *UnavailableError) Hint() string {
	if duplicate, ok := errors.AsType[*manifest.DuplicateError](e.Err); ok {
		return duplicate.Error() + ": no definition is used"
	}
	return ""
}

// ReleaseReference returns the object from which a release takes its chart: the
// HelmChart that is created for it, or the object in chartRef.
func ReleaseReference(hr *helmv2.HelmRelease) (kind, namespace, name string) {
	switch ref := hr.Spec.ChartRef; {
	case ref != nil:
		return ref.Kind, ref.Namespace, ref.Name
	case hr.Spec.Chart != nil:
		return sourcev1.HelmChartKind, hr.Spec.Chart.GetNamespace(hr.Namespace), hr.GetHelmChartName()
	}
	return "", "", ""
}

// externalArtifact is a kind that only ArtifactGenerators create here.
const externalArtifact = sourcev1.ExternalArtifactKind

// ReleaseSource returns the object from which a release takes its chart. Its error for a forbidden reference has the
// code [finding.ForbiddenReference].
func (inv *Inventory) ReleaseSource(obj *manifest.Object, hr *helmv2.HelmRelease) (*admission.Admitted, error) {
	if hr.Spec.Chart != nil {
		return inv.madeChart(obj)
	}
	kind, namespace, name := ReleaseReference(hr)
	namespace = cmp.Or(namespace, hr.Namespace)
	if kind == "" { // admission lets an object without a spec pass
		return nil, finding.WithCode(finding.BrokenRule, errors.New("invalid Chart reference: either chart or chartRef must be set"))
	}
	if err := inv.Access(hr.Namespace, kind, namespace, name, "spec", "chartRef", "namespace"); err != nil {
		return nil, err
	}
	adm, err := inv.FindFor(obj, kind, namespace, name)
	if kind == externalArtifact && (err != nil || adm.Object.Origin == nil) {
		if clash := inv.Clash(namespace, name); clash != nil {
			return nil, finding.WithCode(finding.ChartClash, clash)
		}
		if rejected := inv.Derivations().unmade[store.NewKey(kind, namespace, name)]; rejected != nil {
			return nil, fmt.Errorf("could not get Source object: %w", &UnavailableError{kind, name, rejected})
		}
		return nil, closedGate(namespace, name)
	}
	if err != nil {
		return nil, fmt.Errorf("could not get Source object: %w", &UnavailableError{kind, name, err})
	}
	return adm, nil
}

func (inv *Inventory) madeChart(obj *manifest.Object) (*admission.Admitted, error) {
	d := inv.Derivations().Of[obj]
	if d == nil { // the object is not in the input
		return nil, errors.New("a HelmRelease that is not in the input has no HelmChart")
	}
	if d.Err != nil {
		return nil, d.Err
	}
	return inv.Admit(d.Chart)
}

// closedGate returns the error of a kind that helm-controller does not read by default. No flag enables that gate here.
func closedGate(namespace, name string) error {
	return &finding.Problem{
		Code: finding.ForbiddenReference, Field: []any{"spec", "chartRef", "kind"},
		Text: fmt.Sprintf("can't access '%s/%s/%s', %[1]s feature gate is disabled", externalArtifact, namespace, name),
		Advice: "no ArtifactGenerator in the input creates it: " + fmt.Sprintf(finding.AddFile, "one") + ", or replace it by a directory with " +
			finding.StandIn(externalArtifact, namespace, name),
	}
}
