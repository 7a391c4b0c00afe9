package render

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

func (r *Renderer) homeOf(o *manifest.Object) string {
	if r.fetchedFile(o.Pos.File) {
		return r.inputHome()
	}
	if real, err := r.disk.absolute(filepath.Dir(o.Pos.File)); err == nil {
		return r.repository(real).root
	}
	return r.repositories[0].root
}

// inputHome returns the root of the repository that the input begins with. It is also the root for fetched files.
func (r *Renderer) inputHome() string {
	for _, path := range r.paths {
		return r.repository(filepath.Dir(path)).root
	}
	return r.repositories[0].root
}

// fetchedFile reports whether a file, by its displayed name, is part of a fetched source.
func (r *Renderer) fetchedFile(name string) bool {
	name = filepath.ToSlash(name)
	return slices.ContainsFunc(r.arrived.trees, func(s Source) bool { return strings.HasPrefix(name, s.shownAs()+"/") })
}

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
		return fmt.Sprintf("this repository at %s, which is not checked out", wanted)
	}
	if at == "" && !absent && url != "" && ref.Kind == "GitRepository" || at != "" && there() {
		return ""
	}
	return other
}

// elsewhereError is the error of a source that is not available here, so that its Kustomizations are not built.
type elsewhereError struct {
	Source
	why     string
	unknown bool // the input does not define it

	generator *manifest.Object // that needs it, nil for a Kustomization
	at        int              // among its sources
	alias     string
}

func (e *elsewhereError) Error() string {
	if e.generator != nil {
		return fmt.Sprintf("source %s %s/%s (alias %s) is %s: no artifact is created, and objects that use its artifacts are not built", e.Kind, e.Namespace, e.Name, e.alias, e.why)
	}
	return fmt.Sprintf("its source %s %s/%s is %s: it is not built", e.Kind, e.Namespace, e.Name, e.why)
}

func (e *elsewhereError) Hint() string {
	hint := "name a checkout of it with " + finding.StandIn(e.Kind, e.Namespace, e.Name) + ", or with source in .helmsrc.yaml"
	switch {
	case e.unknown, e.why == notFetched, e.Kind == externalArtifact:
		return hint
	case e.Kind == "HelmChart":
		return finding.FollowFirst
	}
	return hint + finding.OrFollow
}

// notFetched describes a source that could not be fetched. The reason is reported with the source.
const notFetched = "not available, because it could not be fetched"

// guessed reports whether a root is only the directory of a named file: it was not given as a directory and is not a checkout.
func (r *Renderer) guessed(root string) bool {
	_, given := r.named[root]
	return !given && r.disk.repository(root) != root
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

// checkout reads the Git directory of a repository, once. The result is empty if the directory is missing.
func (r *Renderer) checkout(root string) *checkout {
	c := r.checkouts[root]
	if c == nil {
		c = readCheckout(root)
		r.checkouts[root] = c
		for _, name := range slices.Sorted(maps.Keys(c.unread)) {
			r.notices = append(r.notices, Notice{Code: finding.Unread, Text: fmt.Sprintf("%v: the checked-out revision is uncertain", c.unread[name]),
				Excerpt: manifest.Excerpt{Pos: manifest.Pos{File: r.display(name)}}})
		}
	}
	return c
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

// standIn returns the directory that replaces a source, or nil: one given with --source, or a fetched tree.
func (r *Renderer) standIn(want Source) (*Source, string, error) {
	for _, s := range r.o.Sources {
		if s.Kind == want.Kind && s.Name == want.Name && (s.Namespace == "" || s.Namespace == want.Namespace) {
			root, err := absolute(s.Dir)
			if err != nil {
				return nil, "", fmt.Errorf(finding.SourceFailed, s.Dir, plainPathError(err))
			}
			return &s, root, nil
		}
	}
	for _, s := range r.arrived.trees {
		if s.key() == want.key() {
			root, err := absolute(s.Dir)
			return &s, root, err
		}
	}
	return nil, "", nil
}

// sourceFor returns the source that an object names, or nil. It looks at built sources first, then at files. If
// several files define it, as for several clusters, it returns the nearest one.
func (r *Renderer) sourceFor(o *manifest.Object, built sources, want Source) *manifest.Object {
	key := want.key()
	if source := built[key]; source != nil {
		return source
	}
	found := r.index.sources[key]
	if len(found) < 2 {
		for _, p := range found {
			return p.object
		}
		return nil
	}
	return r.nearestFirst(o, found)[0].object
}

// nearestFirst sorts objects in files by their distance from another object.
func (r *Renderer) nearestFirst(o *manifest.Object, list []placed) []placed {
	dir, err := r.disk.absolute(filepath.Dir(o.Pos.File))
	if err != nil {
		return list
	}
	steps := make(map[string]int, len(list)) // by path
	for _, p := range list {
		steps[p.path] = stepsTo([]string{filepath.Dir(p.path)}, dir)
	}
	return slices.SortedStableFunc(slices.Values(list), func(a, b placed) int { return cmp.Compare(steps[a.path], steps[b.path]) })
}

// stepsTo returns the number of directories, up and down, from the nearest of several directories to dir.
func stepsTo(dirs []string, dir string) int {
	least := math.MaxInt
	for _, from := range dirs {
		if steps, ok := manifest.StepsBetween(from, dir); ok {
			least = min(least, steps)
		}
	}
	return least
}
