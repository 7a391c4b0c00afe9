package render

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// plan says who builds whom, as far as the files show it before anything is built.
type plan struct {
	nodes   []*node
	edges   [][]int
	starts  []int           // what nothing else builds
	claimed map[string]bool // files that are part of anything that begins there
	idle    bool            // what was passed has nothing to do with Flux

	made map[int]map[string]string // what overlays of one base give, and what is beside Kustomizations that say the same

	known      bool            // the input says what is applied, so that what does not follow from that is applied by nothing
	entryFiles map[string]bool // that say so
	begun      map[string]bool // sources that clusters begin with, by kind, namespace and name
	elsewhere  []string        // directories of Kustomizations whose source is elsewhere
}

// node is a Kustomization as it lies in a file, or a directory with a kustomization file.
type node struct {
	object   *manifest.Object
	file     string // real path of the file that it is in
	dir      string
	path     string // of a Kustomization, real; "" if it is not known
	claims   *closure
	entry    bool    // it is applied by hand, or by the operator
	named    bool    // its file was named, so that it is judged whether anything applies it or not
	begins   bool    // a cluster may begin with it
	home     bool    // its source is this repository
	made     *output // whose artifact it is built from, nil for none
	pathHere string  // the directory here that a Kustomization from elsewhere would build
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

// patches are the files of Kustomizations that kustomization files name, but not as resources.
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

// origins are the nodes of a graph to begin at, so that all are reached and none of them from another: those that nothing
// leads to, and the first one of each circle that nothing leads into. They are in the order of the nodes.
func origins(edges [][]int) []int {
	var order []int // by the time at which they are done with
	seen, back := make([]bool, len(edges)), make([][]int, len(edges))
	for i, to := range edges {
		visit(edges, i, seen, func(j int) { order = append(order, j) })
		for _, j := range to {
			back[j] = append(back[j], i)
		}
	}
	// What is done with last is in a circle that nothing leads into, or alone.
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

// visit goes through everything that a node leads to and that was not seen before.
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
