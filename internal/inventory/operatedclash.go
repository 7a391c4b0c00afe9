package inventory

import (
	"fmt"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/operator"
)

// helmName is what a release is known by in Helm: its name, and the namespace of its storage.
type helmName struct{ release, namespace string }

// SameRelease returns the other HelmReleases of the input that are the same release in Helm as one of Flux 1: those of its own
// operator, which refuses what belongs to another, and those of other controllers, which know nothing of each other.
func (inv *Inventory) SameRelease(obj *manifest.Object, hr *operator.HelmRelease) (own, others []*manifest.Object) {
	for _, other := range inv.Derivations().released[helmName{hr.GetReleaseName(), hr.GetTargetNamespace()}] {
		switch {
		case other == obj:
		case other.Group() == obj.Group():
			own = append(own, other)
		default:
			others = append(others, other)
		}
	}
	return own, others
}

// indexReleases sorts the HelmReleases that are applied by what they are called in Helm.
func (inv *Inventory) indexReleases(all *derivations) {
	all.released = map[helmName][]*manifest.Object{}
	for _, obj := range all.objects {
		if obj.ReferenceOnly || !IsOperated(obj) && !IsRelease(obj) {
			continue
		}
		adm, err := inv.Admit(obj)
		if err != nil {
			continue
		}
		switch hr := adm.Typed.(type) {
		case *operator.HelmRelease:
			if !hr.Ignored() {
				all.addRelease(helmName{hr.GetReleaseName(), hr.GetTargetNamespace()}, obj)
			}
		case *helmv2.HelmRelease:
			if !hr.Spec.Suspend && hr.GetStorageNamespace() == hr.GetReleaseNamespace() { // as it is with the operator
				all.addRelease(helmName{hr.GetReleaseName(), hr.GetReleaseNamespace()}, obj)
			}
		}
	}
}

func (all *derivations) addRelease(name helmName, obj *manifest.Object) {
	all.released[name] = append(all.released[name], obj)
}

// AntecedentError is a release whose resources the operator would find to be another HelmRelease's.
type AntecedentError struct {
	release, namespace string
	others             []*manifest.Object
}

// Text says of which other objects the release is.
func (e *AntecedentError) Text() string { return sameReleaseText(e.release, e.namespace, e.others) }

// NewAntecedentError is about a HelmRelease and others of its operator, at least one.
func NewAntecedentError(hr *operator.HelmRelease, others []*manifest.Object) *AntecedentError {
	return &AntecedentError{hr.GetReleaseName(), hr.GetTargetNamespace(), others}
}

// Error is in the operator's words.
func (e *AntecedentError) Error() string {
	return fmt.Sprintf("release appears to be managed by '%s:helmrelease/%s'", e.others[0].Namespace, e.others[0].Name)
}

// Finding is what is wrong.
func (*AntecedentError) Finding() finding.Code { return finding.ReleaseClash }

// Path is the field that it is about.
func (*AntecedentError) Path() []any { return []any{"metadata", "name"} }

// Hint says which other objects are meant.
func (e *AntecedentError) Hint() string {
	return e.Text() + ": give one of them another releaseName or targetNamespace"
}

// SharedReleaseText warns of HelmReleases of other controllers.
func SharedReleaseText(hr *operator.HelmRelease, others []*manifest.Object) string {
	return sameReleaseText(hr.GetReleaseName(), hr.GetTargetNamespace(), others) + ": two controllers upgrade it"
}

func sameReleaseText(release, namespace string, others []*manifest.Object) string {
	names := make([]string, len(others))
	for i, obj := range others {
		names[i] = fmt.Sprintf("%s at %s", obj, obj.Pos)
	}
	return fmt.Sprintf("release '%s' in namespace '%s' is that of %s, too", release, namespace, strings.Join(names, " and "))
}
