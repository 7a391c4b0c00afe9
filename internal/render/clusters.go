package render

import (
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// maxClusters is the limit of clusters in an input. An input with more is one cluster.
const maxClusters = 100

// Clusters returns the clusters of the input, in its order: a single one if the whole input can be one. If files were passed, it
// returns the clusters that the files are part of.
func (r *Renderer) Clusters() (clusters []*Cluster) {
	whole := []*Cluster{{r: r}}
	if !r.in.Kustomized() {
		return whole
	}
	defer func() {
		if p := recover(); p != nil {
			r.plan, clusters = nil, whole
		}
	}()
	r.plan = r.newPlan()
	if r.plan.idle {
		return whole
	}
	whole[0].begin(r.plan.starts)
	whole[0].Dir = r.plan.beginning()
	divided := r.plan.divide(r.plan.starts)
	if len(divided) < 2 {
		return whole
	}
	all := divided
	divided = r.ofPassed(divided)
	for _, c := range divided {
		c.r, c.others = r, all
		c.begin(c.origins)
		c.claims = map[string]bool{}
		for _, i := range c.origins {
			c.claims[r.plan.nodes[i].file] = true
			for _, j := range reach(r.plan.edges, i) {
				maps.Copy(c.claims, r.plan.nodes[j].claims.files)
			}
		}
	}
	return divided
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

// beginning returns the directory of the first Kustomization that a single cluster begins with.
func (p *plan) beginning() string {
	for _, i := range p.starts {
		if p.nodes[i].object != nil {
			return p.dirOf(p.nodes[i])
		}
	}
	return ""
}

func (c *Cluster) begin(nodes []int) { c.starts = slices.Sorted(slices.Values(nodes)) }

// divide sorts the origins into clusters. Each goes to the nearest cluster without a different definition of a Kustomization
// that the origin leads to. An origin without conflicts goes to all clusters that are equally near.
func (p *plan) divide(starts []int) []*Cluster {
	defined, contested := definitions(p.nodes, p.edges, starts, p.made)
	var clusters []*Cluster
	for _, i := range starts {
		if !contested[i] {
			continue
		}
		dir := p.dirOf(p.nodes[i])
		near := nearest(clusters, dir, defined[i])
		if len(near) == 0 {
			near = []*Cluster{{Dir: dir, defined: map[string]string{}}}
			clusters = append(clusters, near[0])
		}
		if len(clusters) > maxClusters {
			return nil
		}
		c := near[0]
		c.origins, c.own, c.dirs = append(c.origins, i), append(c.own, i), append(c.dirs, dir)
		maps.Copy(c.defined, defined[i])
	}
	for _, i := range starts {
		if contested[i] {
			continue
		}
		near := nearest(clusters, p.dirOf(p.nodes[i]), nil)
		for _, c := range near {
			c.origins = append(c.origins, i) // it does not count as a definition or directory of them
		}
		if len(near) == 1 {
			near[0].own = append(near[0].own, i)
		}
	}
	return clusters
}

// dirOf returns the directory of an origin: the directory that it builds if its file is in there (as with flux bootstrap).
func (p *plan) dirOf(n *node) string {
	if n.object == nil {
		return n.dir
	}
	if n.path != "" && inside(n.path, n.file) {
		return n.path
	}
	return filepath.Dir(n.file)
}

// nearest returns the clusters that are the fewest directories away, except clusters with different definitions of the given
// Kustomizations.
func nearest(clusters []*Cluster, dir string, defined map[string]string) []*Cluster {
	var near []*Cluster
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

func (c *Cluster) takes(defined map[string]string) bool {
	for name, spec := range defined {
		if own, ok := c.defined[name]; ok && own != spec {
			return false
		}
	}
	return true
}

// ofPassed returns the clusters that the passed files are part of: by Kustomizations of one cluster only, if possible. Otherwise
// it returns all clusters, or the nearest one if that is requested.
func (r *Renderer) ofPassed(clusters []*Cluster) []*Cluster {
	if r.passed == nil {
		return clusters
	}
	nodes, edges := r.plan.nodes, r.plan.edges
	var found []*Cluster
	for _, c := range clusters {
		if slices.ContainsFunc(c.own, func(i int) bool {
			return slices.ContainsFunc(reach(edges, i), func(j int) bool { return r.touches(nodes[j].claims) || r.passed[nodes[j].file] })
		}) {
			found = append(found, c)
		}
	}
	if len(found) > 0 {
		return found
	}
	if dir, err := absolute(filepath.Dir(r.in.Passed[0])); err == nil && r.o.Nearest {
		return nearest(clusters, dir, nil)[:1]
	}
	return clusters
}

// definitions returns the Kustomizations that each origin leads to, and the origins that lead to a Kustomization of which another
// origin has a different definition.
func definitions(nodes []*node, edges [][]int, starts []int, made map[int]map[string]string) (defined map[int]map[string]string, contested map[int]bool) {
	defined, contested = map[int]map[string]string{}, map[int]bool{}
	first, twice := map[string]string{}, map[string]bool{}
	define := func(i int, name, text string) {
		if _, ok := first[name]; !ok {
			first[name] = text
		}
		twice[name] = twice[name] || first[name] != text
		defined[i][name] = text
	}
	for _, i := range starts {
		defined[i] = map[string]string{}
		for _, j := range reach(edges, i) {
			o := nodes[j].object
			if o == nil {
				continue
			}
			if m := nodes[j].made; m != nil {
				define(i, m.object.String(), specText(m.object))
			}
			define(i, o.Namespace+"/"+o.Name, specText(o))
		}
		for name, text := range made[i] {
			define(i, name, text)
		}
	}
	for i, names := range defined {
		for name := range names {
			contested[i] = contested[i] || twice[name]
		}
	}
	return defined, contested
}

func specText(o *manifest.Object) string {
	spec, _ := json.Marshal(o.Content["spec"])
	return string(spec)
}

// repeated finds starts with the same Kustomization in several directories and adds the other objects of these directories to
// the definitions of the starts. Such Kustomizations are one cluster, unless their directories define the same object twice.
func (r *Renderer) repeated(p *plan) {
	same := map[string][]int{}
	for _, i := range p.starts {
		if o := p.nodes[i].object; o != nil {
			key := o.String() + specText(o)
			same[key] = append(same[key], i)
		}
	}
	maps.DeleteFunc(same, func(_ string, starts []int) bool { return len(starts) < 2 })
	if len(same) == 0 {
		return
	}
	beside := map[string][]*manifest.Object{}
	for _, path := range r.paths {
		beside[filepath.Dir(path)] = append(beside[filepath.Dir(path)], r.byPath[path].Objects()...)
	}
	for _, starts := range same {
		for _, i := range starts {
			dir := filepath.Dir(p.nodes[i].file)
			if p.made[i] == nil {
				p.made[i] = map[string]string{}
			}
			for _, o := range beside[dir] {
				if o.Group() != manifest.KustomizeGroup {
					p.made[i]["directory of "+o.String()] = dir
				}
			}
		}
	}
}

// Directories that no Kustomization of the input leads to may be applied by Kustomizations of another repository. Overlays of
// one base are then separate clusters, if they define an object differently.

// overlays returns the objects of Flux in plain directories with a common base, by start, kind and name.
func (r *Renderer) overlays(p *plan) map[int]map[string]string {
	users := map[string][]int{}
	for _, i := range p.starts {
		if n := p.nodes[i]; n.object == nil {
			for _, d := range n.claims.dirs {
				users[d.path] = append(users[d.path], i)
			}
		}
	}
	made := map[int]map[string]string{}
	for _, dir := range slices.Sorted(maps.Keys(users)) {
		for _, i := range users[dir] {
			if len(users[dir]) > 1 && made[i] == nil {
				made[i] = r.plainObjects(p.nodes[i].dir)
			}
		}
	}
	return made
}

// plainObjects returns the objects of Flux in a plain directory, by kind and name. The result is empty if the directory cannot be
// built; the build reports the error.
func (r *Renderer) plainObjects(dir string) map[string]string {
	objects := map[string]string{}
	for _, o := range r.buildPlain(&flux{repo: r.repository(dir), path: dir}, newClosure()).objects {
		apiVersion, kind, namespace, name := manifest.Identify(o.content)
		if text, err := json.Marshal(o.content); err == nil && strings.Contains(apiVersion, "toolkit.fluxcd.io/") {
			objects[kind+" "+namespace+"/"+name] = string(text)
		}
	}
	return objects
}
