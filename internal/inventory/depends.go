package inventory

import (
	"cmp"
	"errors"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// dependencyFault is what is wrong with an element of spec.dependsOn.
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
			continue // it may be there
		}
		if err != nil {
			found = append(found, dependencyFault{finding.MissingDependency, i, fmt.Sprintf("unable to get '%s/%s' dependency: %v", name.namespace, name.name, err)})
			continue
		}
		if way := inv.dependencyPath(dep, obj, nil); way != nil {
			found = append(found, dependencyFault{finding.DependencyCycle, i, "dependsOn forms a cycle, so none of these is ever installed: " + cycle(way)})
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

// maxReleases bounds how many releases a cycle is looked for among.
const maxReleases = 1000

// dependencyPath returns a path along dependsOn from one release to another, or nil.
func (inv *Inventory) dependencyPath(from, to *manifest.Object, seen map[*manifest.Object]bool) []*manifest.Object {
	if from == to {
		return []*manifest.Object{to}
	}
	if seen == nil {
		seen = map[*manifest.Object]bool{}
	}
	if seen[from] || len(seen) >= maxReleases {
		return nil
	}
	seen[from] = true
	adm, err := inv.Admit(from)
	if err != nil {
		return nil
	}
	for _, name := range dependencies(adm.Typed.(*helmv2.HelmRelease)) {
		next, err := inv.set.Lookup(manifest.ReleaseGroup, helmv2.HelmReleaseKind, name.namespace, name.name)
		if err != nil {
			continue
		}
		if way := inv.dependencyPath(next, to, seen); way != nil {
			return append([]*manifest.Object{from}, way...)
		}
	}
	return nil
}

func cycle(way []*manifest.Object) string {
	var names []string
	for _, o := range way {
		names = append(names, o.Namespace+"/"+o.Name)
	}
	return finding.Cycle(names)
}
