package render

import (
	"bytes"
	"path/filepath"
	"slices"

	sigsyaml "sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// Most repositories contain the start of a cluster: the file that flux bootstrap writes, a FluxInstance, the values of the chart
// that makes a FluxInstance, a Kustomization with the name of its source, or a Kustomization that its own path applies.

const syncFile = "gotk-sync.yaml"

const instanceChart = "flux-instance"

// findSyncs finds the sources and paths that the clusters of the input begin with, before any path is known.
func (r *Renderer) findSyncs() {
	r.syncs = map[string][]*manifest.Object{}
	for _, path := range r.paths {
		f := r.byPath[path]
		if filepath.Base(path) == syncFile {
			for _, o := range f.Kustomizations() {
				r.owns(o)
			}
		}
		for _, o := range f.Instances() {
			if raw, err := o.Raw(); err == nil {
				r.sync(path, o, raw.Value, o.Namespace, "spec", "sync")
			}
		}
		for _, o := range f.Objects() {
			if o.Group() == manifest.ReleaseGroup && (o.Name == instanceChart || manifest.At[string](o.Content, "spec", "chart", "spec", "chart") == instanceChart) {
				r.sync(path, o, o.Content, "", "spec", "values", "instance", "sync")
			}
		}
		if f.Mentions("instance:") && f.Mentions("sync:") && f.NoObjects() != nil {
			var values map[string]any
			if sigsyaml.Unmarshal(f.Text(), &values) == nil {
				r.sync(path, manifest.FirstDocument(f.Name, f.Text()), values, "", "instance", "sync")
			}
		}
	}
}

// sync makes the Kustomization that the operator makes from the sync of an instance.
func (r *Renderer) sync(path string, o *manifest.Object, content map[string]any, namespace string, at ...any) {
	made := syncOf(o, content, namespace, at...)
	if made == nil {
		return
	}
	_ = made.finish(r) // the source reports invalid patches
	if made.kustomization == nil {
		return
	}
	r.syncs[path] = append(r.syncs[path], made.kustomization)
	if r.begunElsewhere(made) {
		return
	}
	r.owns(made.kustomization)
	if made.url != "" {
		r.ownURLs = append(r.ownURLs, lastSegment(made.url))
	}
}

// begunElsewhere reports whether the source of a sync is another repository, and records that: no remote of the checkout has its
// name, and its path is missing here.
func (r *Renderer) begunElsewhere(s *syncObjects) bool {
	root, at := r.homeOf(s.instance), cleanPath(manifest.At[string](s.kustomization.Content, "spec", "path"))
	remotes := r.checkout(root).remotes
	if s.url == "" || len(remotes) == 0 || slices.Contains(remotes, lastSegment(s.url)) || at != "" && r.hasDirectory(root, at) {
		return false
	}
	r.others[sourceRef(s.kustomization).key()] = true
	return true
}

// owns records that the source of a cluster's first Kustomization is the repository itself.
func (r *Renderer) owns(o *manifest.Object) {
	ref := sourceRef(o)
	r.own[ref.key()] = true
	source := r.sourceFor(o, nil, ref)
	if url := urlOf(source); url != "" {
		r.ownURLs = append(r.ownURLs, lastSegment(url))
		if branch := refOf(source).branch; branch != "" {
			r.ownBranches = append(r.ownBranches, branch)
		}
	}
}

// begin finds the starts of the clusters. If the input names them, these are all; otherwise the starts are the nodes that no
// other node leads to.
func (p *plan) begin() {
	var entries, named []int
	for i, n := range p.nodes {
		if n.object == nil {
			continue
		}
		if n.named {
			named = append(named, i)
		}
		if n.pathHere != "" {
			p.elsewhere = append(p.elsewhere, n.pathHere)
		}
		if n.entry || n.appliesItself() || p.callsItself(i) {
			n.begins, p.begun[sourceRef(n.object).key()] = true, true
			entries = append(entries, i)
			p.known = p.known || n.path != ""
		}
	}
	if !p.known {
		p.starts = origins(p.edges)
		return
	}
	p.separate(entries)
	reached := map[int]map[int]bool{}
	entries = append(entries, slices.DeleteFunc(named, func(i int) bool { return p.nodes[i].begins })...)
	for _, i := range entries {
		p.entryFiles[p.nodes[i].file] = true
		reached[i] = map[int]bool{}
		for _, j := range reach(p.edges, i) {
			reached[i][j] = true
		}
	}
	for _, i := range entries {
		if !slices.ContainsFunc(entries, func(j int) bool { return j != i && reached[j][i] && (!reached[i][j] || j < i) }) {
			p.starts = append(p.starts, i)
		}
	}
	slices.Sort(p.starts)
}

// separate removes the edges between clusters of which one builds the directory that contains another: two starts with one name
// and different paths are never one cluster.
func (p *plan) separate(entries []int) {
	for _, i := range entries {
		n := p.nodes[i]
		p.edges[i] = slices.DeleteFunc(p.edges[i], func(j int) bool {
			other := p.nodes[j]
			return other.begins && other.object.String() == n.object.String() && other.path != n.path
		})
	}
}

// isNamed reports whether a file was named itself, and not read to find the cluster around a passed file.
func (r *Renderer) isNamed(path string) bool { return r.passed == nil && !r.byPath[path].Walked }

func (r *Renderer) mayBegin(path string) bool {
	f := r.byPath[path]
	return f.NoObjects() != nil && (filepath.Base(path) == syncFile || f.Text() == nil && bytes.Contains(f.Data(), []byte(instanceKind)))
}

// appliesItself reports whether a Kustomization applies its own file and at least one more. It returns false without a path: the
// default is too weak a sign.
func (n *node) appliesItself() bool {
	return n.home && n.claims.files[n.file] && len(n.claims.files) > 1 && manifest.At[string](n.object.Content, "spec", "path") != ""
}

// callsItself reports whether a Kustomization has the name of its source, which is this repository, and leads to other ones.
func (p *plan) callsItself(i int) bool {
	n := p.nodes[i]
	if !n.home || manifest.At[string](n.object.Content, "spec", "sourceRef", "name") != n.object.Name {
		return false
	}
	return n.object.Name == bootstrapName || inside(n.path, n.file) || slices.ContainsFunc(reach(p.edges, i), func(j int) bool { return j != i && p.nodes[j].object != nil })
}

// pathHere returns the directory at the path of a Kustomization, "" if it is not in the repository.
func (r *Renderer) pathHere(o *manifest.Object) string {
	root, path := r.homeOf(o), slashed(manifest.At[string](o.Content, "spec", "path"))
	if path == "" {
		return ""
	}
	return r.directoryAt(root, path)
}
