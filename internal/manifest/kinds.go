package manifest

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

var (
	sourceKinds = []string{"HelmRepository", "HelmChart", "GitRepository", "Bucket"}

	// unsupportedKinds are named, with a count, until they work.
	unsupportedKinds = map[groupKind]bool{
		{SourceGroup, "OCIRepository"}:                   true,
		{SourceGroup, "ExternalArtifact"}:                true,
		{"helm.toolkit.fluxcd.io", "HelmRelease"}:        true,
		{"kustomize.toolkit.fluxcd.io", "Kustomization"}: true,
	}
)

type class int

const (
	foreign class = iota
	ours
	secret
	list
	misnamed   // of the source group, but there is no such kind
	incomplete // one of apiVersion and kind tells that it was meant for Flux, the other is missing
	noObject
)

func classify(apiVersion, kind string, n *yaml.Node) class {
	group := groupOf(apiVersion)
	ourKind := isSourceKind(kind)
	switch {
	case group == SourceGroup && ourKind:
		return ours
	case apiVersion == "v1" && kind == "Secret":
		return secret
	case strings.HasSuffix(kind, "List") && isList(group, n):
		return list
	case kind == "" && strings.HasSuffix(group, "toolkit.fluxcd.io"), apiVersion == "" && ourKind:
		return incomplete
	case apiVersion == "" || kind == "":
		return noObject
	case group == SourceGroup && !unsupportedKinds[groupKind{group, kind}]:
		return misnamed
	}
	return foreign
}

// isList tells a List from a kind that merely ends in that word.
func isList(group string, n *yaml.Node) bool {
	items := resolve(at(n, "items"))
	if items == nil || isNull(items) {
		return group == SourceGroup || group == ""
	}
	return items.Kind == yaml.SequenceNode
}

func isSourceKind(kind string) bool {
	for _, k := range sourceKinds {
		if k == kind {
			return true
		}
	}
	return false
}

func kindError(o *Object) error {
	e := &KindError{Pos: o.Pos, APIVersion: o.APIVersion, Kind: o.Kind}
	if near, ok := Nearest(o.Kind, sourceKinds); ok {
		e.hint = "did you mean " + near + "?"
	}
	return e
}

// maxNearest is the longest name that Nearest looks at.
const maxNearest = 64

// Nearest is the known name that was probably meant: the one with the fewest changed letters, if they are few. Equal
// but for case is nearer than anything else.
func Nearest(name string, known []string) (string, bool) {
	if len(name) > maxNearest {
		return "", false
	}
	best, bestDistance := "", 1+max(1, len(name)/3)
	for _, k := range known {
		d := distance(strings.ToLower(name), strings.ToLower(k))
		if d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best, best != ""
}

// distance counts insertions, deletions, replacements and swaps of neighbours.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
