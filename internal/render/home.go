package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// bootstrapName is what flux bootstrap calls the source that a cluster's own repository is.
const bootstrapName = "flux-system"

// elsewhere says what a source is instead of the repository that the input is in, "" if it is that one. A GitRepository is,
// if its URL names the same repository as a remote of the checkout and it is at what is checked out; where that cannot be
// known, any source is whose path is there.
func (r *Renderer) elsewhere(source *manifest.Object, ref kustomizev1.CrossNamespaceSourceReference, namespace, root, at string) string {
	const other = "not this repository"
	if ref.Name == bootstrapName || r.own[datumKey(ref.Kind, namespace, ref.Name)] {
		return ""
	}
	at = strings.Trim(path.Clean("/"+filepath.ToSlash(at)), "/")
	there := func() bool {
		real, err := within(root, join(root, at))
		return err == nil && isDirectory(real)
	}
	url := urlOf(source)
	c := r.checkout(root)
	if remotes := slices.Concat(c.remotes, r.ownURLs); url != "" && ref.Kind == "GitRepository" && len(remotes) > 0 {
		if !slices.Contains(remotes, lastSegment(url)) {
			return other
		}
		wanted := refOf(source)
		unknown := c.branch == "" && c.commit == "" && len(r.ownBranches) == 0
		switch {
		case c.at(wanted, r.ownBranches), unknown && there():
			return ""
		}
		return fmt.Sprintf("this repository at %s, which is not what is checked out", wanted)
	}
	if at == "" && url != "" && ref.Kind == "GitRepository" || at != "" && there() {
		return ""
	}
	return other
}

// urlOf is the URL of a source, "" if there is none or only the cluster knows it.
func urlOf(source *manifest.Object) string {
	if source == nil {
		return ""
	}
	spec, _ := source.Content["spec"].(map[string]any)
	text, _ := spec["url"].(string)
	if strings.Contains(text, "${") {
		return ""
	}
	return text
}

// lastSegment is the name of a repository in its URL: forks and mirrors share it.
func lastSegment(url string) string {
	url, _, _ = strings.Cut(strings.TrimSpace(url), "?")
	url = strings.TrimSuffix(strings.TrimRight(url, "/"), ".git")
	return strings.ToLower(url[strings.LastIndexAny(url, "/:")+1:])
}

// sameSpec reports whether two objects ask for the same.
func sameSpec(a, b *manifest.Object) bool {
	x, err := json.Marshal(a.Content["spec"])
	if err != nil {
		return false
	}
	y, err := json.Marshal(b.Content["spec"])
	return err == nil && bytes.Equal(x, y)
}

func sortedKeys[V any](m map[string]V) []string {
	list := make([]string, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}
