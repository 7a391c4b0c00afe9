package render

import (
	"encoding/json"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// cluster is a part of the input that can be one cluster. A repository may hold several: then some Kustomizations are
// there more than once, each time another one.
type cluster struct {
	name    string
	dirs    []string // where its own origins are
	own     []int    // origins that are in no other
	starts  []int
	defined map[string]string // the Kustomizations of its own origins, and what they say
}

// maxClusters bounds how many clusters an input may be divided into: it is read once for each. More of them are one.
const maxClusters = 100

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
	defined, contested := definitions(nodes, edges, starts)
	var clusters []*cluster
	for _, i := range starts {
		if !contested[i] {
			continue
		}
		dir := b.dirOf(nodes[i])
		near := nearest(clusters, dir, defined[i])
		if len(near) == 0 {
			near = []*cluster{{name: dir, defined: map[string]string{}}}
			clusters = append(clusters, near[0])
		}
		if len(clusters) > maxClusters {
			return nil
		}
		c := near[0]
		c.starts, c.own, c.dirs = append(c.starts, i), append(c.own, i), append(c.dirs, dir)
		maps.Copy(c.defined, defined[i])
	}
	for _, i := range starts {
		if contested[i] {
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

// nearest are the clusters that are the fewest directories away, of those in which certain Kustomizations are not defined
// otherwise.
func nearest(clusters []*cluster, dir string, defined map[string]string) []*cluster {
	var near []*cluster
	least := 0
	for _, c := range clusters {
		if !c.takes(defined) {
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

func (c *cluster) takes(defined map[string]string) bool {
	for name, spec := range defined {
		if own, ok := c.defined[name]; ok && own != spec {
			return false
		}
	}
	return true
}

// stepsTo counts the directories between one and the nearest of several, up and down.
func stepsTo(dirs []string, dir string) int {
	least := math.MaxInt
	for _, from := range dirs {
		if steps, ok := manifest.StepsBetween(from, dir); ok {
			least = min(least, steps)
		}
	}
	return least
}

// definitions are the Kustomizations that each origin leads to, and the origins that lead to one which another one
// defines otherwise.
func definitions(nodes []*node, edges [][]int, starts []int) (defined map[int]map[string]string, contested map[int]bool) {
	defined, contested = map[int]map[string]string{}, map[int]bool{}
	first, twice := map[string]string{}, map[string]bool{}
	for _, i := range starts {
		defined[i] = map[string]string{}
		for _, j := range reach(edges, i) {
			o := nodes[j].object
			if o == nil {
				continue
			}
			spec, _ := json.Marshal(o.Content["spec"])
			name := o.Namespace + "/" + o.Name
			if _, ok := first[name]; !ok {
				first[name] = string(spec)
			}
			twice[name] = twice[name] || first[name] != string(spec)
			defined[i][name] = string(spec)
		}
	}
	for i, names := range defined {
		for name := range names {
			contested[i] = contested[i] || twice[name]
		}
	}
	return defined, contested
}

// reach is everything that an origin leads to, itself included.
func reach(edges [][]int, start int) []int {
	if len(edges[start]) == 0 {
		return []int{start}
	}
	var nodes []int
	visit(edges, start, make([]bool, len(edges)), func(i int) { nodes = append(nodes, i) })
	return nodes
}
