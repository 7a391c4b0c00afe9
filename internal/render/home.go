package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// bootstrapName is the name that flux bootstrap gives the source of a cluster's own repository.
const bootstrapName = "flux-system"

// elsewhere explains why a source is not the repository of the input; it returns "" if it is. A GitRepository is this repository
// if its URL names the same repository as a remote of the checkout, and its ref is checked out. If that cannot be known, a source
// is this repository if its path exists here.
func (r *Renderer) elsewhere(source *manifest.Object, ref Source, root, at string) string {
	const other = "not this repository"
	if r.others[ref.key()] {
		return other
	}
	absent := at == ""
	at = cleanPath(at)
	there := func() bool { return !absent && r.hasDirectory(root, at) } // a missing path is not a sign
	if r.guessed(root) && !there() {
		return "in no directory that was given"
	}
	if r.begins(ref) {
		return ""
	}
	url := urlOf(source)
	c := r.checkout(root)
	if remotes := slices.Concat(c.remotes, r.ownURLs); url != "" && ref.Kind == "GitRepository" && len(remotes) > 0 {
		if !slices.Contains(remotes, lastSegment(url)) && !(r.renamed(url, c) && (there() || r.hasPathOf(ref, root))) {
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
	if at == "" && !absent && url != "" && ref.Kind == "GitRepository" || at != "" && there() {
		return ""
	}
	return other
}

// guessed reports whether a root is only the directory of a named file: it was not given as a directory and is not a checkout.
func (r *Renderer) guessed(root string) bool {
	_, given := r.named[root]
	at, _ := file.Repository(root)
	return !given && at != root
}

func cleanPath(at string) string { return strings.Trim(path.Clean("/"+filepath.ToSlash(at)), "/") }

func (r *Renderer) hasDirectory(root, at string) bool { return r.directoryAt(root, at) != "" }

// directoryAt returns the real path of a directory in a repository, "" if it is missing.
func (r *Renderer) directoryAt(root, at string) string {
	if real, err := r.disk.within(root, join(root, at)); err == nil && file.IsDir(real) {
		return real
	}
	return ""
}

// hasPathOf reports whether the path of any Kustomization of a source exists here. The result holds for the whole source: then a
// missing path is a mistake, not a sign of another repository.
func (r *Renderer) hasPathOf(ref Source, root string) bool {
	return slices.ContainsFunc(r.index.sourcePaths[ref.key()], func(at string) bool {
		at = cleanPath(at)
		return at != "" && r.hasDirectory(root, at)
	})
}

func (r *Renderer) begins(ref Source) bool {
	return ref.Name == bootstrapName || r.own[ref.key()]
}

// renamed reports whether a URL may be a former or new name of the repository that is checked out: a remote has the same owner,
// and no source of the input has the name of a remote.
func (r *Renderer) renamed(url string, c *checkout) bool {
	if len(r.ownURLs) > 0 || slices.Contains(c.remotes, lastSegment(url)) || !slices.Contains(c.owners, ownerOf(url)) {
		return false
	}
	for _, found := range r.index.sources {
		if slices.ContainsFunc(found, func(p placed) bool { return slices.Contains(c.remotes, lastSegment(urlOf(p.object))) }) {
			return false
		}
	}
	return true
}

// checkoutOf returns the root of the repository of a HelmRelease of Flux 1 if its chart is in there, "" otherwise: a remote has
// the name of the chart's repository, the path exists, and the ref is checked out.
func (r *Renderer) checkoutOf(release *manifest.Object) string {
	url, ref := manifest.At[string](release.Content, "spec", "chart", "git"), manifest.At[string](release.Content, "spec", "chart", "ref")
	if url == "" || !manifest.IsFlux1(release.Group()) {
		return ""
	}
	root := r.homeOf(release)
	c := r.checkout(root)
	here := slices.Contains(c.remotes, lastSegment(url)) && r.hasDirectory(root, cleanPath(manifest.At[string](release.Content, "spec", "chart", "path")))
	if !here || !c.at(gitRef{branch: ref}, nil) && c.commit != ref {
		return ""
	}
	return root
}

// noticeRenamed notes that a source is assumed to be this repository although no remote has the name in its URL.
func (b *builder) noticeRenamed(f *flux) {
	ref, remotes := sourceRef(f.object), b.checkout(f.repo.root).remotes
	names := b.ownURLs // of a FluxInstance, whose source is not in a file
	if f.artifact.source != nil {
		names = []string{lastSegment(urlOf(f.artifact.source))}
	}
	known := func(name string) bool { return name == "" || slices.Contains(remotes, name) }
	if f.source != nil || !f.artifact.git || len(remotes) == 0 || len(names) == 0 || slices.ContainsFunc(names, known) {
		return
	}
	why := "the cluster begins with it"
	if !b.begins(ref) {
		why = "a remote has the same owner, and paths of its Kustomizations are here"
	}
	b.notice(Notice{Text: fmt.Sprintf("%s %s/%s is assumed to be this repository under another name, although no remote of the checkout has the name in its URL: %s",
		ref.Kind, ref.Namespace, ref.Name, why),
		Hint: fmt.Sprintf(finding.SayWhatItIs, ref.Kind, ref.Namespace, ref.Name)})
}

func sameSpec(a, b *manifest.Object) bool {
	x, err := json.Marshal(a.Content["spec"])
	if err != nil {
		return false
	}
	y, err := json.Marshal(b.Content["spec"])
	return err == nil && bytes.Equal(x, y)
}
