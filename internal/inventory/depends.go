package inventory

import (
	"cmp"
	"errors"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// dependencyFault is an error in an element of spec.dependsOn.
type dependencyFault struct {
	Code    finding.Code
	Index   int
	Message string
}

func (inv *Inventory) DependencyFaults(obj *manifest.Object, hr *helmv2.HelmRelease) []dependencyFault {
	var found []dependencyFault
	for i, name := range dependencies(hr) {
		dep, err := inv.set.Lookup(manifest.ReleaseGroup, helmv2.HelmReleaseKind, name.namespace, name.name)
		if missing, ok := errors.AsType[*manifest.NotFoundError](err); ok && missing.Unread {
			continue // it may be in an unread file
		}
		if err != nil {
			found = append(found, dependencyFault{finding.MissingDependency, i, fmt.Sprintf("unable to get '%s/%s' dependency: %v", name.namespace, name.name, err)})
			continue
		}
		if path := finding.DependencyPath(dep, obj, inv.dependenciesOf); path != nil {
			found = append(found, dependencyFault{finding.DependencyCycle, i, "dependsOn forms a cycle, so none of these is ever installed: " + cycle(path, 0)})
		}
	}
	return found
}

type releaseName struct{ namespace, name string }

func dependencies(hr *helmv2.HelmRelease) []releaseName {
	var names []releaseName
	for _, d := range hr.Spec.DependsOn {
		namespace := cmp.Or(d.Namespace, hr.Namespace)
		names = append(names, releaseName{namespace, d.Name})
	}
	return names
}

// dependenciesOf returns the releases in the input that a release depends on.
func (inv *Inventory) dependenciesOf(obj *manifest.Object) []*manifest.Object {
	adm, err := inv.Admit(obj)
	if err != nil {
		return nil
	}
	var found []*manifest.Object
	for _, name := range dependencies(adm.Typed.(*helmv2.HelmRelease)) {
		if dep, err := inv.set.Lookup(manifest.ReleaseGroup, helmv2.HelmReleaseKind, name.namespace, name.name); err == nil {
			found = append(found, dep)
		}
	}
	return found
}
