package render

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// plan holds the graph of builds, as far as the files show it before any build.
type plan struct {
	nodes   []*node
	edges   [][]int
	starts  []int           // nodes that no other node builds
	claimed map[string]bool // files that the starts lead to
	idle    bool            // the passed files do not concern Flux

	made map[int]map[string]string // objects of overlays with a common base, and objects beside equal Kustomizations

	known      bool            // the input shows which files are applied; all other files are not
	entryFiles map[string]bool // that show it
	begun      map[string]bool // sources that clusters begin with, by kind, namespace and name
	elsewhere  []string        // directories of Kustomizations whose source is elsewhere
}

// node is a Kustomization in a file, or a directory with a kustomization file.
type node struct {
	object   *manifest.Object
	file     string // real path of the file that it is in
	dir      string
	path     string // of a Kustomization, real; "" if it is not known
	claims   *closure
	entry    bool    // it is applied by hand or by the operator
	named    bool    // its file was named, so that it is checked even if no build applies it
	begins   bool    // a cluster may begin with it
	home     bool    // its source is this repository
	made     *output // the generator of its artifact, or nil
	pathHere string  // the directory here at the path of a Kustomization from elsewhere
}

// live reports whether a file or directory takes part in a run even without a build: because the input does not show which files
// are applied, or because the path itself shows it.
func (p *plan) live(path string) bool { return !p.known || p.entryFiles[path] }

// sourceElsewhere reports whether a file is at the path of a Kustomization whose source is elsewhere: it may be applied.
func (p *plan) sourceElsewhere(path string) bool {
	return slices.ContainsFunc(p.elsewhere, func(dir string) bool { return inside(dir, path) })
}

func (r *Renderer) newPlan() *plan {
	r.pass()
	r.findSyncs()
	p := &plan{nodes: r.nodes(), claimed: map[string]bool{}, entryFiles: map[string]bool{}, begun: map[string]bool{}}
	claimers := map[string][]int{}
	for i, n := range p.nodes {
		for path := range n.claims.files {
			claimers[path] = append(claimers[path], i)
		}
	}
	p.edges = make([][]int, len(p.nodes))
	for j, n := range p.nodes {
		for _, i := range claimers[n.file] {
			if i != j {
				p.edges[i] = append(p.edges[i], j)
			}
		}
	}
	if p.idle = r.idle(p.nodes); p.idle {
		return p
	}
	r.concern(p.nodes)
	p.begin()
	for _, path := range r.paths {
		p.entryFiles[path] = p.entryFiles[path] || r.isNamed(path) || r.mayBegin(path)
	}
	p.made = r.overlays(p)
	r.repeated(p)
	seen := make([]bool, len(p.nodes))
	for _, i := range p.starts {
		visit(p.edges, i, seen, func(j int) {
			for path := range p.nodes[j].claims.files {
				p.claimed[path] = true
			}
		})
		p.claimed[p.nodes[i].file] = true
	}
	return p
}

// nodes lists everything that can be built, Kustomizations first, in the order of the input.
func (r *Renderer) nodes() []*node {
	var nodes []*node
	add := func(path string, o *manifest.Object, entry bool) {
		o.ReferenceOnly = r.passed != nil && !r.passed[path]
		n := &node{object: o, file: path, claims: newClosure(), entry: entry, named: r.isNamed(path)}
		f, err := r.locate(o, nil)
		if f != nil {
			n.home, n.path, n.made = f.source == nil && f.made == nil, f.path, f.made
			_, _, _ = f.kustomization(n.claims)
		} else if _, elsewhere := errors.AsType[*elsewhereError](err); elsewhere {
			n.pathHere = r.pathHere(o)
		}
		nodes = append(nodes, n)
	}
	patches := r.patches()
	for _, path := range r.paths {
		if patches[path] {
			continue
		}
		for _, o := range r.byPath[path].Kustomizations() {
			add(path, o, filepath.Base(path) == syncFile)
		}
		for _, o := range r.syncs[path] {
			add(path, o, true)
		}
	}
	for _, dir := range r.in.Dirs {
		real, err := r.disk.absolute(dir)
		if err != nil {
			continue
		}
		repo := r.repository(real)
		d := repo.directory(real)
		if d == nil || d.flux || d.kustomization != nil && d.kustomization.Kind == types.ComponentKind {
			continue
		}
		n := &node{dir: real, file: d.file, claims: newClosure()}
		_ = n.claims.add(repo, real, nil)
		nodes = append(nodes, n)
	}
	return nodes
}

// patches returns the files that kustomization files name, but not as resources: a Kustomization in one is a patch.
func (r *Renderer) patches() map[string]bool {
	named, resources := map[string]bool{}, map[string]bool{}
	for _, dir := range r.in.Dirs {
		real, err := r.disk.absolute(dir)
		if err != nil {
			continue
		}
		if d := r.repository(real).directory(real); d != nil {
			for _, path := range d.files {
				named[path] = true
			}
			maps.Copy(resources, d.resources)
		}
	}
	maps.DeleteFunc(named, func(path string, _ bool) bool { return resources[path] })
	return named
}

// origins returns the starts of a graph, in the order of the nodes: they reach all nodes and not each other. A start is a node
// that no other node leads to, or the first node of a cycle that no node outside leads to.
func origins(edges [][]int) []int {
	var order []int // in which nodes are completed
	seen, back := make([]bool, len(edges)), make([][]int, len(edges))
	for i, to := range edges {
		visit(edges, i, seen, func(j int) { order = append(order, j) })
		for _, j := range to {
			back[j] = append(back[j], i)
		}
	}
	// The last completed node is in a cycle without edges from outside, or alone.
	reached := make([]bool, len(edges))
	var starts []int
	for _, i := range slices.Backward(order) {
		if reached[i] {
			continue
		}
		visit(edges, i, reached, func(int) {})
		starts = append(starts, slices.Min(reach(back, i)))
	}
	slices.Sort(starts)
	return starts
}

// reach returns all nodes that an origin leads to, including itself.
func reach(edges [][]int, start int) []int {
	if len(edges[start]) == 0 {
		return []int{start}
	}
	var nodes []int
	visit(edges, start, make([]bool, len(edges)), func(i int) { nodes = append(nodes, i) })
	return nodes
}

// visit calls done for every node that a node leads to and that was not seen before, successors first.
func visit(edges [][]int, node int, seen []bool, done func(int)) {
	if seen[node] {
		return
	}
	seen[node] = true
	for _, next := range edges[node] {
		visit(edges, next, seen, done)
	}
	done(node)
}
