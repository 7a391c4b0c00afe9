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

// ReleaseClash says, in the operator's words, that it would find the resources of a HelmRelease to be those of others of its
// own, of which there is at least one.
func ReleaseClash(hr *operator.HelmRelease, others []*manifest.Object) error {
	return &finding.Problem{
		Code: finding.ChartClash, Field: []any{"metadata", "name"},
		Text:   fmt.Sprintf("release appears to be managed by '%s:helmrelease/%s'", others[0].Namespace, others[0].Name),
		Advice: SameReleaseText(hr, others) + ": give one of them another releaseName or targetNamespace",
	}
}

// SharedReleaseText warns of HelmReleases of other controllers.
func SharedReleaseText(hr *operator.HelmRelease, others []*manifest.Object) string {
	return SameReleaseText(hr, others) + ": two controllers upgrade it"
}

// SameReleaseText says of which other objects a release is.
func SameReleaseText(hr *operator.HelmRelease, others []*manifest.Object) string {
	names := make([]string, len(others))
	for i, obj := range others {
		names[i] = fmt.Sprintf("%s at %s", obj, obj.Pos)
	}
	return fmt.Sprintf("release '%s' in namespace '%s' is that of %s, too", hr.GetReleaseName(), hr.GetTargetNamespace(), strings.Join(names, " and "))
}
