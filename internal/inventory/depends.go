package inventory

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// dependencyWarning is what is wrong with an element of spec.dependsOn.
type dependencyWarning struct {
	Code    finding.Code
	Index   int
	Message string
}

func (inv *Inventory) DependencyWarnings(obj *manifest.Object, hr *helmv2.HelmRelease) []dependencyWarning {
	var found []dependencyWarning
	for i, name := range dependencies(hr) {
		dep, err := inv.set.Lookup(manifest.ReleaseGroup, helmv2.HelmReleaseKind, name.namespace, name.name)
		if missing, ok := errors.AsType[*manifest.NotFoundError](err); ok && missing.Unread {
			continue // it may be there
		}
		if err != nil {
			found = append(found, dependencyWarning{finding.MissingDependency, i, fmt.Sprintf("unable to get '%s/%s' dependency: %v", name.namespace, name.name, err)})
			continue
		}
		if way := inv.dependencyPath(dep, obj, nil); way != nil {
			found = append(found, dependencyWarning{finding.DependencyCycle, i, "dependsOn goes round in a circle, so none of these is ever installed: " + circle(obj, way)})
		}
	}
	return found
}

type releaseName struct{ namespace, name string }

func dependencies(hr *helmv2.HelmRelease) []releaseName {
	var names []releaseName
	for _, d := range hr.Spec.DependsOn {
		namespace := d.Namespace
		if namespace == "" {
			namespace = hr.Namespace
		}
		names = append(names, releaseName{namespace, d.Name})
	}
	return names
}

// maxReleases bounds how many releases a circle is looked for among.
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

// circle writes the way with its beginning in front.
func circle(obj *manifest.Object, way []*manifest.Object) string {
	var names []string
	for _, o := range slices.Insert(slices.Clone(way), 0, obj) {
		names = append(names, o.Namespace+"/"+o.Name)
	}
	return strings.Join(names, " → ")
}
