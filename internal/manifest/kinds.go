package manifest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/finding"
)

var (
	// keptKinds are the kinds whose objects are kept.
	keptKinds = []groupKind{
		{SourceGroup, "HelmRepository"},
		{SourceGroup, "HelmChart"},
		{ReleaseGroup, "HelmRelease"},
		{SourceGroup, "GitRepository"},
		{SourceGroup, "Bucket"},
		{SourceGroup, "OCIRepository"},
		{ImageGroup, "ImageRepository"},
		{ImageGroup, "ImagePolicy"},
		{SourceGroup, "ExternalArtifact"},
		{ExtensionsGroup, "ArtifactGenerator"},
		{flux1Group, "HelmRelease"},
		{olderFlux1Group, "HelmRelease"},
	}

	// otherKinds are the other kinds of Flux.
	otherKinds = []groupKind{
		{KustomizeGroup, "Kustomization"},
		{ImageGroup, "ImageUpdateAutomation"},
		{NotificationGroup, "Alert"},
		{NotificationGroup, "Provider"},
		{NotificationGroup, "Receiver"},
		{OperatorGroup, "FluxInstance"},
		{OperatorGroup, "FluxReport"},
		{OperatorGroup, "ResourceSet"},
		{OperatorGroup, "ResourceSetInputProvider"},
		{oldestFlux1Group, "FluxHelmRelease"},
	}

	fluxKinds = slices.Concat(keptKinds, otherKinds)
)

type class int

const (
	foreign class = iota
	ours
	data // Secrets, ConfigMaps, ServiceAccounts and Namespaces
	list
	misnamed   // an unknown kind in a group of Flux, or a kind of Flux in a group that resembles one of Flux
	incomplete // apiVersion or kind shows that the object was meant for Flux, the other is missing
	noObject
)

// Called returns the kind by which objects are distinguished: for a HelmRelease of Flux 1 the name includes the API
// group, as kubectl writes it, because Flux 2 has a kind of the same name.
func Called(apiVersion, kind string) string {
	if group := groupOf(apiVersion); IsFlux1(group) && kind == "HelmRelease" {
		return kind + "." + group
	}
	return kind
}

// BareKind returns the kind without an API group.
func BareKind(called string) string {
	kind, _, _ := strings.Cut(called, ".")
	return kind
}

// BareKinds returns the kinds without their API groups, each once.
func BareKinds(kinds []string) []string {
	var bare []string
	for _, kind := range kinds {
		if name := BareKind(kind); !slices.Contains(bare, name) {
			bare = append(bare, name)
		}
	}
	return bare
}

// IsFlux1 reports whether group is an API group of the HelmReleases of Flux 1.
func IsFlux1(group string) bool { return group == flux1Group || group == olderFlux1Group }

// mentionsFlux reports whether a file may contain an object that is kept.
func mentionsFlux(data []byte) bool {
	return slices.ContainsFunc([]string{"toolkit.flux", ExtensionsGroup, OperatorGroup, flux1Group, olderFlux1Group}, func(group string) bool { return bytes.Contains(data, []byte(group)) })
}

// looksLikeData reports whether a file that cannot be parsed was meant to be a ConfigMap or a Secret, and is not a template.
func looksLikeData(data []byte) bool {
	has := func(line string) bool {
		return bytes.HasPrefix(data, []byte(line)) || bytes.Contains(data, []byte("\n"+line))
	}
	return len(data) <= maxFileSize && has("apiVersion: v1") && (has("kind: ConfigMap") || has("kind: Secret")) && !bytes.Contains(data, []byte("{{")) && !bytes.Contains(data, []byte("{%"))
}

func classify(apiVersion, kind string, n *yaml.Node) class {
	group := groupOf(apiVersion)
	kind = BareKind(kind)
	switch {
	case slices.Contains(keptKinds, groupKind{group, kind}):
		return ours
	case apiVersion == "v1" && (kind == "Secret" || kind == "ConfigMap" || kind == "ServiceAccount" || kind == "Namespace"):
		return data
	case strings.HasSuffix(kind, "List") && isList(group, n):
		return list
	case kind == "" && strings.HasSuffix(group, "toolkit.fluxcd.io"), apiVersion == "" && isKeptKind(kind):
		return incomplete
	case apiVersion == "" || kind == "":
		return noObject
	case slices.Contains(fluxKinds, groupKind{group, kind}):
		return foreign
	case isFluxGroup(group), misspelt(group, kind), regrouped(group, kind):
		return misnamed
	}
	return foreign
}

// isList distinguishes a List from a kind that merely ends in that word.
func isList(group string, n *yaml.Node) bool {
	items := resolve(at(n, "items"))
	if items == nil || isNull(items) {
		return isFluxGroup(group) || group == ""
	}
	return items.Kind == yaml.SequenceNode
}

// isFluxGroup reports whether this package knows all kinds of an API group.
func isFluxGroup(group string) bool {
	switch group {
	case SourceGroup, ReleaseGroup, KustomizeGroup, ImageGroup, NotificationGroup, ExtensionsGroup, flux1Group, olderFlux1Group:
		return true
	}
	return false
}

func isKeptKind(kind string) bool {
	return slices.ContainsFunc(keptKinds, func(k groupKind) bool { return k.kind == kind })
}

// regrouped reports whether an object has a kind of Flux, in a group that is not one of Flux's but resembles one.
func regrouped(group, kind string) bool {
	groups := groupsOf(kind)
	if len(groups) == 0 || isFluxGroup(group) || slices.Contains(groups, group) {
		return false
	}
	_, near := finding.Nearest(group, groups)
	return near || group == "" || fluxLike(group)
}

// misspelt reports whether a kind resembles a kind of Flux, in a group of Flux or a group that resembles one.
func misspelt(group, kind string) bool {
	_, near := finding.Nearest(kind, kindsOf(""))
	return near && (fluxLike(group) || group == OperatorGroup)
}

// fluxLike reports whether a group has a name that other projects do not use.
func fluxLike(group string) bool {
	return (strings.Contains(group, "toolkit") || strings.Contains(group, "fluxcd")) && !strings.Contains(group, ".contrib.")
}

func groupsOf(kind string) []string {
	var groups []string
	for _, k := range fluxKinds {
		if k.kind == kind {
			groups = append(groups, k.group)
		}
	}
	return groups
}

// kindError returns the error of an object whose kind does not exist in its group of Flux, or of a kind of Flux in an unknown group.
func kindError(o *Object) error {
	e := &ParseError{Msg: fmt.Sprintf("no matches for kind %q in version %q", o.Kind, o.APIVersion), code: finding.UnknownKind, line: o.Excerpt("kind")}
	groups := groupsOf(o.Kind)
	within, isNear := finding.Nearest(o.Kind, kindsOf(o.Group()))
	anywhere, isLike := finding.Nearest(o.Kind, kindsOf(""))
	switch {
	case len(groups) > 0 && !isFluxGroup(o.Group()):
		e.line = o.Excerpt("apiVersion")
		e.hint = "unknown API group, did you mean " + groups[0] + "?"
	case isNear && o.Group() != "":
		e.hint = "did you mean " + within + "?"
	case len(groups) > 0:
		e.hint = o.Kind + " is a kind of " + groups[0]
	case isLike:
		e.hint = fmt.Sprintf("did you mean %s of %s?", anywhere, groupsOf(anywhere)[0])
	}
	e.Pos = e.line.Pos
	return e
}

// kindsOf lists the kinds of a group of Flux, "" for all.
func kindsOf(group string) []string {
	var names []string
	for _, k := range fluxKinds {
		if group == "" || k.group == group {
			names = append(names, k.kind)
		}
	}
	slices.Sort(names)
	return names
}
