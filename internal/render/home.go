package render

import (
	"bytes"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

const (
	// bootstrapName is what flux bootstrap calls the source that a cluster's own repository is.
	bootstrapName = "flux-system"

	maxGitConfig = 1 << 20
)

// isHome tells whether a source is the repository that the input is in. A GitRepository is, if its URL names the same
// repository as a remote of the checkout; where that cannot be told, any source is whose path is there.
func (b *builder) isHome(kind, namespace, name, root, at string) bool {
	if kind == "ExternalArtifact" {
		return false
	}
	if name == bootstrapName {
		return true
	}
	at = strings.Trim(path.Clean("/"+filepath.ToSlash(at)), "/")
	if url, ok := b.urlOf(kind, namespace, name); ok && kind == "GitRepository" {
		if remotes := remotesOf(root); len(remotes) > 0 {
			return slices.Contains(remotes, lastSegment(url))
		}
	}
	if at == "" {
		return kind == "GitRepository"
	}
	real, err := within(root, join(root, at))
	if err != nil {
		return false
	}
	return isDirectory(real)
}

// urlOf is the URL of a source of the input.
func (b *builder) urlOf(kind, namespace, name string) (string, bool) {
	match := func(o *manifest.Object) bool {
		return o.Group() == manifest.SourceGroup && o.Kind == kind && o.Name == name && o.Namespace == namespace
	}
	url := func(o *manifest.Object) (string, bool) {
		spec, _ := o.Content["spec"].(map[string]any)
		text, ok := spec["url"].(string)
		return text, ok && !strings.Contains(text, "${")
	}
	for _, o := range b.objects {
		if match(o) {
			return url(o)
		}
	}
	for _, p := range b.paths {
		for _, o := range b.byPath[p].Objects() {
			if match(o) {
				return url(o)
			}
		}
	}
	return "", false
}

// remotesOf lists the names of the repositories that a checkout knows as its remotes.
func remotesOf(root string) []string {
	file := filepath.Join(root, ".git", "config")
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxGitConfig {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var names []string
	remote := false
	for line := range bytes.Lines(text) {
		line := strings.TrimSpace(string(line))
		if strings.HasPrefix(line, "[") {
			remote = strings.HasPrefix(line, "[remote ")
		}
		key, value, found := strings.Cut(line, "=")
		if remote && found && strings.TrimSpace(key) == "url" {
			names = append(names, lastSegment(value))
		}
	}
	return names
}

// lastSegment is the name of a repository in its URL: forks and mirrors share it.
func lastSegment(url string) string {
	url, _, _ = strings.Cut(strings.TrimSpace(url), "?")
	url = strings.TrimSuffix(strings.TrimRight(url, "/"), ".git")
	return strings.ToLower(url[strings.LastIndexAny(url, "/:")+1:])
}

// sameSpec tells whether two objects ask for the same.
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
