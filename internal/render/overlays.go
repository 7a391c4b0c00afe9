package render

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// Directories that no Kustomization of the input leads to may be applied by Kustomizations of another repository. Overlays of
// one base are then each applied in a cluster of its own, as far as they say different things of one object.

// overlays are the objects of Flux that plain directories give which have a base in common, by start, kind and name.
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

// plainObjects are the objects of Flux that a plain directory gives, by what they are called. There are none of one that cannot be
// built, which is reported when it is.
func (r *Renderer) plainObjects(dir string) map[string]string {
	objects := map[string]string{}
	repo, c := r.repository(dir), newClosure()
	d := repo.directory(dir)
	if err := c.add(repo, dir, nil); err != nil || d.unknown != nil {
		return objects
	}
	k, err := clone(d.kustomization)
	if err != nil {
		return objects
	}
	for _, o := range r.buildOnce(repo, dir, d.file, k, nil).objects {
		apiVersion, kind, namespace, name := manifest.Identify(o.content)
		if text, err := json.Marshal(o.content); err == nil && strings.Contains(apiVersion, "toolkit.fluxcd.io/") {
			objects[kind+" "+namespace+"/"+name] = string(text)
		}
	}
	return objects
}

// overlay reports whether a directory includes one that lies outside of it: what applies it may well give it a namespace.
func (c *closure) overlay() bool {
	for _, d := range c.dirs[1:] {
		if !inside(c.dirs[0].path, d.path) {
			return true
		}
	}
	return false
}
