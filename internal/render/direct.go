package render

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"

	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
)

// means reports whether an annotation means something to kustomize, as one that keeps an object out of what it builds.
func means(annotation string) bool {
	return strings.Contains(annotation, "config.kubernetes.io/") || strings.Contains(annotation, "config.k8s.io/")
}

// direct builds kustomizations that do no more than name files and each other, patch objects, and set the namespace of those to
// which nothing refers by it. kustomize compares each object with all others, which for thousands takes most of the time of a
// run, and it prepares much for each of thousands of small builds. Whatever it might object to, or treat in a way of its own,
// is left to it. So are the files that it might read in another way than package manifest, which has read them before.
type direct struct {
	r       *repository
	fs      *confined
	factory *resmap.Factory
	seen    map[objectID]bool
	found   []sourced
	patches bool // of a kustomization further out are for what is found
}

// sourced is an object, and the file that it comes from.
type sourced struct {
	*resource.Resource                // as kustomize reads it, nil for one that no patch is for
	content            map[string]any // as it was read before, nil for one that is another by now
	file               string
}

// weight is about what the object needs once it is decoded.
func (s sourced) weight() int64 {
	if s.content != nil {
		return weightOfValue(s.content)
	}
	return weightOf(s.YNode())
}

// objectID is what kustomize identifies objects by.
type objectID struct {
	resid.Gvk
	namespace, name string
}

// directly answers false if kustomize is to build it.
func (r *repository) directly(fs *confined, dir string, k *types.Kustomization) ([]sourced, bool) {
	d := &direct{r: r, fs: fs, factory: resmap.NewFactory(provider.NewDefaultDepProvider().GetResourceFactory()), seen: map[objectID]bool{}}
	if len(k.Resources) == 0 || !d.kustomization(dir, dir, nil, k) || len(d.found) == 0 || len(d.found) > maxObjects {
		return nil, false
	}
	return d.found, true
}

// bare reports whether a kustomization only names resources, patches, and a namespace.
func bare(k *types.Kustomization) bool {
	if k.Kind == types.ComponentKind {
		return false
	}
	rest := *k
	rest.TypeMeta, rest.MetaData, rest.Resources, rest.Patches, rest.Namespace = types.TypeMeta{}, nil, nil, nil, ""
	text, err := json.Marshal(rest)
	return err == nil && string(text) == "{}"
}

// kustomization builds a directory, by the name that led to it. The namespaces are those that kustomizations further out set,
// the next one first.
func (d *direct) kustomization(dir, name string, namespaces []string, k *types.Kustomization) bool {
	if !bare(k) {
		return false
	}
	if k.Namespace != "" {
		namespaces = append([]string{k.Namespace}, namespaces...)
	}
	if len(k.Patches) > 0 {
		return d.patched(dir, name, namespaces, k)
	}
	return d.resources(dir, name, namespaces, k)
}

// resources goes through the resources of a kustomization.
func (d *direct) resources(dir, name string, namespaces []string, k *types.Kustomization) bool {
	for _, path := range k.Resources {
		if d.fs.ctx.Err() != nil {
			return false
		}
		real, err := d.r.within(join(dir, path))
		if err != nil {
			return false
		}
		if d.r.isDirectory(real) {
			sub := d.r.directory(real)
			if sub == nil || sub.err != nil || len(sub.kustomization.Resources) == 0 || sub.unknown != nil || !d.kustomization(real, join(name, path), namespaces, sub.kustomization) {
				return false
			}
		} else if !d.file(join(dir, path), join(name, path), namespaces) {
			return false
		}
	}
	return true
}

func (d *direct) file(path, name string, namespaces []string) bool {
	text, err := d.fs.ReadFile(path)
	if err != nil {
		return false
	}
	contents, plain := d.read(path, text)
	if plain && !d.patches {
		for _, content := range contents {
			if !d.add(sourced{content: content, file: name}, namespaces) {
				return false
			}
		}
		return true
	}
	list, err := d.parse(path, text, plain)
	if err != nil || plain && len(list) != len(contents) {
		return false
	}
	for i, res := range list {
		s := sourced{Resource: res, file: name}
		if plain {
			s.content = contents[i]
		} else if hasMeaning(res) {
			return false
		}
		if d.patches && setOrigin(res, name) != nil || !d.add(s, namespaces) {
			return false
		}
	}
	return true
}

// hasMeaning reports whether an annotation of an object means something to kustomize.
func hasMeaning(res *resource.Resource) bool {
	for k := range res.GetAnnotations() {
		if means(k) {
			return true
		}
	}
	return false
}

// add answers false if there is an object of that name.
func (d *direct) add(s sourced, namespaces []string) bool {
	if len(namespaces) > 0 && (!s.relocate(namespaces, d.patches) || !s.moveContent(namespaces[len(namespaces)-1])) {
		return false
	}
	var id resid.ResId
	if s.content != nil {
		id = plainID(s.content)
	} else {
		id = s.CurId()
	}
	key := objectID{id.Gvk, id.EffectiveNamespace(), id.Name}
	if d.seen[key] {
		return false
	}
	d.seen[key] = true
	d.found = append(d.found, s)
	return true
}

// relocate sets the namespaces of what kustomize read, one after the other: a patch may name any that the object had.
func (s *sourced) relocate(namespaces []string, remember bool) bool {
	if s.Resource == nil {
		return true
	}
	if !movable(s.GetGvk()) {
		return false
	}
	for _, namespace := range namespaces {
		if remember {
			s.StorePreviousId()
		}
		if s.SetNamespace(namespace) != nil {
			return false
		}
	}
	return true
}

// moveContent sets the namespace of what was read before, which is shared.
func (s *sourced) moveContent(namespace string) bool {
	if s.content == nil {
		return true
	}
	if !movable(plainID(s.content).Gvk) {
		return false
	}
	meta, _ := s.content["metadata"].(map[string]any)
	s.content, meta = maps.Clone(s.content), maps.Clone(meta)
	meta["namespace"], s.content["metadata"] = namespace, meta
	return true
}

// read looks for the objects of a file among those that were read before. They are shared.
func (d *direct) read(path string, text []byte) ([]map[string]any, bool) {
	real, err := d.fs.real(path)
	if err != nil {
		return nil, false
	}
	f, err := d.r.file(real)
	if err != nil || !bytes.Equal(f.Data(), text) {
		return nil, false // it was decrypted, or made
	}
	objects, ok := f.PlainDocuments()
	for _, content := range objects {
		if !plain(content) {
			return nil, false
		}
	}
	return objects, ok
}

// plain reports whether kustomize takes an object as it is: it refuses none of it, takes nothing apart, and does nothing for an
// annotation.
func plain(content map[string]any) bool {
	id := plainID(content)
	meta, _ := content["metadata"].(map[string]any)
	if annotations, ok := meta["annotations"].(map[string]any); ok && len(annotations) == 0 {
		return false
	}
	if _, given := meta["namespace"]; id.Version == "" && id.Group == "" || id.Kind == "" || strings.HasSuffix(id.Kind, "List") || id.Name == "" || given && id.Namespace == "" {
		return false
	}
	for _, field := range []string{"labels", "annotations"} {
		values, ok := meta[field].(map[string]any)
		if _, given := meta[field]; given && !ok {
			return false
		}
		for k, v := range values {
			if _, ok := v.(string); !ok || means(k) {
				return false
			}
		}
	}
	return !emptyItem(content)
}

// plainID is what kustomize knows an object by.
func plainID(content map[string]any) resid.ResId {
	text := func(m map[string]any, field string) string {
		s, _ := m[field].(string)
		return s
	}
	meta, _ := content["metadata"].(map[string]any)
	group, version := resid.ParseGroupVersion(text(content, "apiVersion"))
	return resid.NewResIdWithNamespace(resid.NewGvk(group, version, text(content, "kind")), text(meta, "name"), text(meta, "namespace"))
}

// emptyItem reports whether there is a null in a list.
func emptyItem(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if emptyItem(e) {
				return true
			}
		}
	case []any:
		for _, e := range v {
			if e == nil || emptyItem(e) {
				return true
			}
		}
	}
	return false
}

// movable reports whether a namespace changes nothing else of an object than its own: kustomize knows no reference in it, and none
// to it from objects of these kinds.
func movable(id resid.Gvk) bool {
	return isFluxGroup(id.Group) || id.Group == "" && (id.Kind == "ConfigMap" || id.Kind == "Secret")
}
