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

// bootstrapName is what flux bootstrap calls the source that a cluster's own repository is.
const bootstrapName = "flux-system"

// elsewhere says what a source is instead of the repository that the input is in, "" if it is that one. A GitRepository is,
// if its URL names the same repository as a remote of the checkout and it is at what is checked out; where that cannot be
// known, any source is whose path is there.
func (r *Renderer) elsewhere(source *manifest.Object, ref Source, root, at string) string {
	const other = "not this repository"
	if r.others[ref.key()] {
		return other
	}
	absent := at == ""
	at = cleanPath(at)
	there := func() bool { return !absent && r.hasDirectory(root, at) } // no path says nothing
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

// guessed reports whether nothing says that paths begin at a root: it is where a file lies that was named, and no checkout.
func (r *Renderer) guessed(root string) bool {
	_, given := r.named[root]
	at, _ := file.Repository(root)
	return !given && at != root
}

func cleanPath(at string) string { return strings.Trim(path.Clean("/"+filepath.ToSlash(at)), "/") }

func (r *Renderer) hasDirectory(root, at string) bool { return r.directoryAt(root, at) != "" }

// directoryAt is the real path of a directory of a repository, "" if it is not there.
func (r *Renderer) directoryAt(root, at string) string {
	if real, err := r.disk.within(root, join(root, at)); err == nil && file.IsDir(real) {
		return real
	}
	return ""
}

// hasPathOf reports whether a path of any Kustomization of a source is here. What is decided by that is decided for the source:
// a path that is not here is a mistake then, and no sign of another repository.
func (r *Renderer) hasPathOf(ref Source, root string) bool {
	return slices.ContainsFunc(r.index.sourcePaths[ref.key()], func(at string) bool {
		at = cleanPath(at)
		return at != "" && r.hasDirectory(root, at)
	})
}

func (r *Renderer) begins(ref Source) bool {
	return ref.Name == bootstrapName || r.own[ref.key()]
}

// renamed reports whether a URL may be the former name, or the new one, of the repository that is checked out: a remote is
// another one of the same owner, and no source of the input is called like any of the remotes.
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

// checkoutOf is the root of the repository that a HelmRelease of Flux 1 lies in, if its chart comes from there: a remote is called like the
// repository of the chart, the path is there, and the ref is what is checked out. It is "" for all others.
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
	names := b.ownURLs // of a FluxInstance, whose source is in no file
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

// ownerOf is the host in the URL of a repository, and what lies between that and the name of the repository.
func ownerOf(url string) string {
	url, _, _ = strings.Cut(strings.TrimSpace(url), "?")
	url = strings.TrimSuffix(strings.TrimRight(url, "/"), ".git")
	_, rest, found := strings.Cut(url, "://")
	if !found {
		rest = strings.Replace(url, ":", "/", 1) // git@host:owner/name
	}
	if at := strings.IndexAny(rest, "@/"); at >= 0 && rest[at] == '@' {
		rest = rest[at+1:]
	}
	owner := rest[:max(0, strings.LastIndexByte(rest, '/'))]
	if !strings.Contains(owner, "/") {
		return "" // a host alone has many owners, or one that is not known
	}
	return strings.ToLower(owner)
}

// urlOf is the URL of a source, or "" if it has no URL, or only the cluster knows it.
func urlOf(source *manifest.Object) string {
	if source == nil {
		return ""
	}
	text := manifest.At[string](source.Content, "spec", "url")
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

func sameSpec(a, b *manifest.Object) bool {
	x, err := json.Marshal(a.Content["spec"])
	if err != nil {
		return false
	}
	y, err := json.Marshal(b.Content["spec"])
	return err == nil && bytes.Equal(x, y)
}
