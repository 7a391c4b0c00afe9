package render

import (
	"slices"

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
