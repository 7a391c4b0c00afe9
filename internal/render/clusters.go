package render

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
)

// cluster is a part of the input that can be one cluster. A repository may hold several: then some Kustomizations are
// there more than once, each time another one.
type cluster struct {
	name   string
	dirs   []string // where its own origins are
	own    []int    // origins that are in no other
	starts []int
}

// Clusters are the directories of the clusters that were found in the input, in its order; none if all of it can be one.
// Of files that were passed they are those that the files are part of, and the first is built if nobody asked for another.
func (r *Renderer) Clusters() []string { return r.clusters }

// ofCluster picks the origins of the cluster that this run is about. What the others are made of is nothing by itself.
func (b *builder) ofCluster(nodes []*node, edges [][]int, starts []int) []int {
	if b.o.Cluster == 0 && b.passed == nil {
		return starts
	}
	clusters := b.divide(nodes, edges, starts)
	if len(clusters) < 2 {
		return starts
	}
	clusters = b.ofPassed(nodes, edges, clusters)
	if len(clusters) > 1 {
		for _, c := range clusters {
			b.Renderer.clusters = append(b.Renderer.clusters, b.display(c.name))
		}
	}
	mine := clusters[max(0, min(b.o.Cluster, len(clusters))-1)].starts
	slices.Sort(mine)
	for _, i := range starts {
		if slices.Contains(mine, i) {
			continue
		}
		if !slices.ContainsFunc(mine, func(j int) bool { return nodes[j].file == nodes[i].file }) {
			b.claimed[nodes[i].file] = true
		}
		for _, j := range reach(edges, i) {
			b.claim(nodes[j].claims)
		}
	}
	return mine
}

// divide sorts the origins into clusters. Each goes to the nearest that has no other definition of a Kustomization that
// it leads to. One that fits everywhere and is equally near to several is in all of them.
func (b *builder) divide(nodes []*node, edges [][]int, starts []int) []*cluster {
	conflicts := conflictsOf(nodes, edges, starts)
	var clusters []*cluster
	for _, i := range starts {
		if len(conflicts[i]) == 0 {
			continue
		}
		dir := b.dirOf(nodes[i])
		near := nearest(clusters, dir, conflicts[i])
		if len(near) == 0 {
			near = []*cluster{{name: dir}}
			clusters = append(clusters, near[0])
		}
		c := near[0]
		c.starts, c.own, c.dirs = append(c.starts, i), append(c.own, i), append(c.dirs, dir)
	}
	for _, i := range starts {
		if len(conflicts[i]) > 0 {
			continue
		}
		near := nearest(clusters, b.dirOf(nodes[i]), nil)
		for _, c := range near {
			c.starts = append(c.starts, i) // it says nothing of what else is near
		}
		if len(near) == 1 {
			near[0].own = append(near[0].own, i)
		}
	}
	return clusters
}

// dirOf is where an origin is: the directory that it builds if it is in there itself, as that of flux bootstrap is.
func (b *builder) dirOf(n *node) string {
	if n.object == nil {
		return n.dir
	}
	if f, _ := b.locate(n.object); f != nil && inside(f.path, n.file) {
		return f.path
	}
	return filepath.Dir(n.file)
}

// nearest are the clusters that are the fewest directories away, without those that hold any of certain origins.
func nearest(clusters []*cluster, dir string, without map[int]bool) []*cluster {
	var near []*cluster
	least := 0
	for _, c := range clusters {
		if slices.ContainsFunc(c.starts, func(i int) bool { return without[i] }) {
			continue
		}
		steps := stepsTo(c.dirs, dir)
		if len(near) == 0 || steps < least {
			near, least = nil, steps
		}
		if steps == least {
			near = append(near, c)
		}
	}
	return near
}

// stepsTo counts the directories between one and the nearest of several, up and down.
func stepsTo(dirs []string, dir string) int {
	least := -1
	for _, from := range dirs {
		rel, err := filepath.Rel(from, dir)
		if err != nil {
			continue
		}
		steps := 0
		if rel != "." {
			steps = strings.Count(filepath.ToSlash(rel), "/") + 1
		}
		if least < 0 || steps < least {
			least = steps
		}
	}
	return least
}

// conflictsOf tells of each origin which others lead to a Kustomization of the same name that says something else.
func conflictsOf(nodes []*node, edges [][]int, starts []int) map[int]map[int]bool {
	type definition struct {
		start int
		spec  string
	}
	defined := map[string][]definition{}
	for _, i := range starts {
		for _, j := range reach(edges, i) {
			if o := nodes[j].object; o != nil {
				spec, _ := json.Marshal(o.Content["spec"])
				name := o.Namespace + "/" + o.Name
				defined[name] = append(defined[name], definition{i, string(spec)})
			}
		}
	}
	conflicts := map[int]map[int]bool{}
	for _, same := range defined {
		for _, a := range same {
			for _, b := range same {
				if a.start == b.start || a.spec == b.spec {
					continue
				}
				if conflicts[a.start] == nil {
					conflicts[a.start] = map[int]bool{}
				}
				conflicts[a.start][b.start] = true
			}
		}
	}
	return conflicts
}

// reach is everything that an origin leads to, itself included.
func reach(edges [][]int, start int) []int {
	var nodes []int
	visit(edges, start, make([]bool, len(edges)), func(i int) { nodes = append(nodes, i) })
	return nodes
}
