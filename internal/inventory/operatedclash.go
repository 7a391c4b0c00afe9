package inventory

import (
	"fmt"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/operator"
)

// helmName identifies a release in Helm: its name, and the namespace of its storage.
type helmName struct{ release, namespace string }

// SameRelease returns the other HelmReleases of the input with the same Helm release as a HelmRelease of Flux 1: own are those
// of the same operator, which refuses resources of another HelmRelease; others are those of other controllers.
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

// indexReleases groups the applied HelmReleases by their Helm release.
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
			if !hr.Spec.Suspend && hr.GetStorageNamespace() == hr.GetReleaseNamespace() { // as for the operator
				all.addRelease(helmName{hr.GetReleaseName(), hr.GetReleaseNamespace()}, obj)
			}
		}
	}
}

func (all *derivations) addRelease(name helmName, obj *manifest.Object) {
	all.released[name] = append(all.released[name], obj)
}

// ReleaseClash returns the operator's error for a HelmRelease whose resources belong to another HelmRelease of the operator.
// The list must not be empty.
func ReleaseClash(hr *operator.HelmRelease, others []*manifest.Object) error {
	return &finding.Problem{
		Code: finding.ChartClash, Field: []any{"metadata", "name"},
		Text:   fmt.Sprintf("release appears to be managed by '%s:helmrelease/%s'", others[0].Namespace, others[0].Name),
		Advice: SameReleaseText(hr, others) + ": give one of them another releaseName or targetNamespace",
	}
}

// SharedReleaseText returns the warning about HelmReleases of other controllers.
func SharedReleaseText(hr *operator.HelmRelease, others []*manifest.Object) string {
	return SameReleaseText(hr, others) + ": two controllers upgrade it"
}

// SameReleaseText returns a text that names the other HelmReleases with the same Helm release.
func SameReleaseText(hr *operator.HelmRelease, others []*manifest.Object) string {
	names := make([]string, len(others))
	for i, obj := range others {
		names[i] = fmt.Sprintf("%s at %s", obj, obj.Pos)
	}
	return fmt.Sprintf("release '%s' in namespace '%s' is that of %s, too", hr.GetReleaseName(), hr.GetTargetNamespace(), strings.Join(names, " and "))
}
